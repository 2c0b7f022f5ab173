//! The statements that write and read tool calls.
//!
//! The column `result` is NULL: results are not stored. The column stays, because dropping it would
//! rewrite the whole table, and older servers that share the folder could not open it any more.

use codexec_types::ExecutionId;
use rusqlite::{Connection, Result, Row, named_params};

use super::read::read_micros;
use crate::{
    call_row::{FinishedCall, NewCall},
    execution::CallRecord,
};

/// Inserts the row of a call. Returns false if the execution is not running.
pub(crate) fn insert(conn: &Connection, row: &NewCall) -> Result<bool> {
    let mut statement = conn.prepare_cached(
        "INSERT INTO calls (execution, number, server, tool, args, args_bytes, start_us)
         SELECT seq, :number, :server, :tool, :args, :args_bytes, :start_us FROM executions
         WHERE id = :id AND status = 'running'",
    )?;
    let inserted = statement.execute(named_params! {
        ":id": row.execution.as_str(),
        ":number": row.number,
        ":server": row.server,
        ":tool": row.tool,
        ":args": row.args,
        ":args_bytes": row.args_bytes,
        ":start_us": row.start_us,
    })?;
    Ok(inserted == 1)
}

pub(crate) fn update(conn: &Connection, execution: &ExecutionId, end: &FinishedCall) -> Result<()> {
    let mut statement = conn.prepare_cached(
        "UPDATE calls SET duration_us = :duration_us, error_code = :error_code,
             message = :message, result_bytes = :result_bytes
         WHERE execution = (SELECT seq FROM executions WHERE id = :id) AND number = :number",
    )?;
    statement.execute(named_params! {
        ":id": execution.as_str(),
        ":number": end.number,
        ":duration_us": end.duration_us,
        ":error_code": end.error.as_ref().map(|(code, _)| code),
        ":message": end.error.as_ref().map(|(_, message)| message),
        ":result_bytes": end.result_bytes,
    })?;
    Ok(())
}

/// Reads the calls of one execution, in order.
pub(crate) fn list(conn: &Connection, execution: i64) -> Result<Vec<CallRecord>> {
    let mut statement =
        conn.prepare_cached("SELECT * FROM calls WHERE execution = ?1 ORDER BY number")?;
    statement.query_map([execution], read_call)?.collect()
}

fn read_call(row: &Row<'_>) -> Result<CallRecord> {
    let bytes = |column: &str| -> Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(i64::unsigned_abs))
    };
    Ok(CallRecord {
        number: row.get("number")?,
        server: row.get("server")?,
        tool: row.get("tool")?,
        args: row.get("args")?,
        args_bytes: bytes("args_bytes")?.unwrap_or_default(),
        after: read_micros(row, "start_us")?,
        duration: read_micros(row, "duration_us")?,
        error_code: row.get("error_code")?,
        message: row.get("message")?,
        result_bytes: bytes("result_bytes")?,
    })
}
