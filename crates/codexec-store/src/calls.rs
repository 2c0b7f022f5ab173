//! Tool calls: each has a row before it is sent, and is updated when it has ended.
//!
//! Ends wait in memory and are written together with the execution's end, before that is
//! acknowledged.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use codexec_types::ExecutionId;
use rusqlite::{Connection, Result, Row, named_params};

use crate::{
    execution::CallRecord,
    mask::mask,
    read::read_micros,
    record::{CallEnd, CallStart},
    write::{clamp, truncate},
};

/// Longer arguments are truncated.
const ARGS_BYTES: usize = 64 << 10;

/// The maximum length of a secret that the masking rules find.
const SECRET_BYTES: usize = 16 << 10;

/// A longer result is not stored.
const RESULT_BYTES: usize = 256 << 10;

const MESSAGE_BYTES: usize = 4 << 10;

const NAME_BYTES: usize = 256;

/// The limit on ends that wait in memory for the end of their execution.
const PENDING_BYTES: usize = 1 << 20;

/// The row of a call that is about to be sent; an owned [`CallStart`].
pub(crate) struct NewCall {
    execution: ExecutionId,
    number: u32,
    server: String,
    tool: String,
    args: String,
    args_bytes: i64,
}

/// The end of a call; an owned [`CallEnd`].
#[derive(Debug)]
pub(crate) struct FinishedCall {
    number: u32,
    error: Option<(String, String)>,
    duration_us: i64,
    result: Option<String>,
    result_bytes: i64,
}

/// The ends that are not written yet, by execution.
#[derive(Debug, Default)]
pub(crate) struct PendingCallEnds(Mutex<HashMap<ExecutionId, (Vec<FinishedCall>, usize)>>);

impl NewCall {
    pub(crate) fn new(execution: &ExecutionId, number: u32, call: &CallStart<'_>) -> NewCall {
        let max_bytes = call.kept_bytes.min(ARGS_BYTES);
        let masked_bytes = if max_bytes == 0 { 0 } else { max_bytes + SECRET_BYTES };
        NewCall {
            execution: execution.clone(),
            number,
            server: truncate(call.server, NAME_BYTES),
            tool: truncate(call.tool, NAME_BYTES),
            // Masks more than is stored, because a truncated secret would not be recognised. The
            // rest is not masked, because the call waits for this.
            args: truncate(&mask(&truncate(call.args, masked_bytes)), max_bytes),
            args_bytes: clamp(call.args.len() as u128),
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.args.len()
    }

    /// Inserts the row. Returns false if the execution is not running.
    pub(crate) fn insert(&self, conn: &Connection) -> Result<bool> {
        let mut statement = conn.prepare_cached(
            "INSERT INTO calls (execution, number, server, tool, args, args_bytes)
             SELECT seq, :number, :server, :tool, :args, :args_bytes FROM executions
             WHERE id = :id AND status = 'running'",
        )?;
        let inserted = statement.execute(named_params! {
            ":id": self.execution.as_str(),
            ":number": self.number,
            ":server": self.server,
            ":tool": self.tool,
            ":args": self.args,
            ":args_bytes": self.args_bytes,
        })?;
        Ok(inserted == 1)
    }
}

impl FinishedCall {
    pub(crate) fn new(number: u32, end: &CallEnd<'_>) -> FinishedCall {
        let error = |(code, message): (&str, &str)| {
            (truncate(code, NAME_BYTES), truncate(&mask(message), MESSAGE_BYTES))
        };
        let result = end.result.filter(|result| result.len() <= RESULT_BYTES);
        FinishedCall {
            number,
            error: end.error.map(error),
            duration_us: clamp(end.duration.as_micros()),
            result: result.map(|result| mask(result).into_owned()),
            result_bytes: clamp(end.result_bytes.into()),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let error = self.error.as_ref().map_or(0, |(code, message)| code.len() + message.len());
        size_of::<FinishedCall>() + error + self.result.as_ref().map_or(0, String::len)
    }

    pub(crate) fn update(&self, conn: &Connection, execution: &ExecutionId) -> Result<()> {
        let mut statement = conn.prepare_cached(
            "UPDATE calls SET duration_us = :duration_us, error_code = :error_code,
                 message = :message, result = :result, result_bytes = :result_bytes
             WHERE execution = (SELECT seq FROM executions WHERE id = :id) AND number = :number",
        )?;
        statement.execute(named_params! {
            ":id": execution.as_str(),
            ":number": self.number,
            ":duration_us": self.duration_us,
            ":error_code": self.error.as_ref().map(|(code, _)| code),
            ":message": self.error.as_ref().map(|(_, message)| message),
            ":result": self.result,
            ":result_bytes": self.result_bytes,
        })?;
        Ok(())
    }
}

impl PendingCallEnds {
    /// Adds an end. Returns true if the execution's ends should be written now.
    pub(crate) fn push(&self, execution: &ExecutionId, end: FinishedCall) -> bool {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (ends, bytes) = pending.entry(execution.clone()).or_default();
        *bytes += end.bytes();
        ends.push(end);
        *bytes > PENDING_BYTES
    }

    pub(crate) fn take(&self, execution: &ExecutionId) -> Vec<FinishedCall> {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.remove(execution).unwrap_or_default().0
    }
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
        duration: read_micros(row, "duration_us")?,
        error_code: row.get("error_code")?,
        message: row.get("message")?,
        result: row.get("result")?,
        result_bytes: bytes("result_bytes")?,
    })
}
