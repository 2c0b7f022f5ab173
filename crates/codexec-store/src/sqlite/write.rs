//! The statements that write an execution's row. Each write is one statement, so it is atomic even
//! in a transaction that it shares with others.

use rusqlite::{Connection, Result, named_params};

use super::{calls, savepoint::run_atomically};
use crate::{
    execution_row::{ExecutionEndRow, ExecutionStartRow},
    pending_ends::PendingEnd,
};

/// The next end number: greater than all before, including those of removed executions.
macro_rules! next_end {
    () => {
        "(SELECT 1 + max(removed.end_number, ifnull((SELECT max(end_number) FROM executions \
         WHERE end_number IS NOT NULL), 0)) FROM removed)"
    };
}
pub(crate) use next_end;

/// Inserts the row of an execution that starts.
pub(crate) fn insert(conn: &Connection, row: &ExecutionStartRow, owner: &str) -> Result<()> {
    let mut statement = conn.prepare_cached(
        "INSERT INTO executions (id, owner, status, started_ms, language, wall_ms, input, code,
             args, working_dir, session, script, script_version, context, principal,
             edge, allowed_tools, grants)
         VALUES (:id, :owner, 'running', :started_ms, :language, :wall_ms, :input, :code,
             :args, :working_dir, :session, :script, :script_version, :context, :principal,
             :edge, :allowed_tools, :grants)",
    )?;
    statement.execute(named_params! {
        ":id": row.id.as_str(),
        ":owner": owner,
        ":started_ms": row.started_ms,
        ":language": row.language,
        ":wall_ms": row.wall_ms,
        ":input": row.input,
        ":code": row.code,
        ":args": row.args,
        ":working_dir": row.working_dir,
        ":session": row.session,
        ":script": row.script.as_ref().map(|(name, _)| name),
        ":script_version": row.script.as_ref().map(|(_, version)| version),
        ":context": row.context,
        ":principal": row.principal,
        ":edge": row.edge,
        ":allowed_tools": row.allowed_tools,
        ":grants": row.grants,
    })?;
    Ok(())
}

/// Ends an execution and its tool calls. Returns false if the execution was not running.
pub(crate) fn end(conn: &Connection, end: &PendingEnd) -> Result<bool> {
    if end.calls.is_empty() {
        return update(conn, &end.finished);
    }
    run_atomically(conn, || {
        end.calls.iter().try_for_each(|call| calls::update(conn, &end.finished.id, call))?;
        update(conn, &end.finished)
    })
}

/// Updates the row. Returns false, and changes nothing, if the execution was not running.
fn update(conn: &Connection, row: &ExecutionEndRow) -> Result<bool> {
    let mut statement = conn.prepare_cached(concat!(
        "UPDATE executions SET status = :status, error_code = :error_code, message = :message,
             output = :output, errors = :errors, value = :value, tool_calls = :tool_calls,
             ended_ms = started_ms + :duration_us / 1000, duration_us = :duration_us,
             posture = :posture,
             peak_memory_bytes = :peak_memory_bytes, cpu_us = :cpu_us,
             changes = :changes, limits_met = :limits_met, exit_code = :exit_code,
             images = :images, end_number = ",
        next_end!(),
        " WHERE id = :id AND status = 'running'",
    ))?;
    let changed = statement.execute(named_params! {
        ":id": row.id.as_str(),
        ":status": row.status.name(),
        ":error_code": row.error_code,
        ":message": row.message,
        ":output": row.output,
        ":errors": row.errors,
        ":value": row.value,
        ":tool_calls": row.tool_calls,
        ":duration_us": row.duration_us,
        ":posture": row.posture,
        ":peak_memory_bytes": row.peak_memory_bytes,
        ":cpu_us": row.cpu_us,
        ":changes": row.changes,
        ":limits_met": row.limits_met,
        ":exit_code": row.exit_code,
        ":images": row.images,
    })?;
    Ok(changed == 1)
}
