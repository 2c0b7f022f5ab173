//! Tool calls: a row before each goes out, and how it ended.
//!
//! Ends wait in memory and are written together with the execution's end: whatever is acknowledged
//! is acknowledged after that.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use codexec_types::ExecutionId;
use rusqlite::{Connection, Result, Row, named_params};

use crate::{
    execution::Call,
    mask::mask,
    read::micros,
    record::{CallEnd, ToolCall},
    write::{clamped, head},
};

/// More of a call's arguments is not kept.
const ARGS_BYTES: usize = 64 << 10;

/// No secret that is known by its shape is longer.
const SECRET_BYTES: usize = 16 << 10;

/// A longer result is not kept.
const RESULT_BYTES: usize = 256 << 10;

const MESSAGE_BYTES: usize = 4 << 10;

const NAME_BYTES: usize = 256;

/// How much may wait in memory for the end of its execution.
const WAITING_BYTES: usize = 1 << 20;

/// A call that is about to go out, with nothing borrowed.
pub(crate) struct Begun {
    execution: ExecutionId,
    number: u32,
    server: String,
    tool: String,
    args: String,
    args_bytes: i64,
}

/// How a call ended, with nothing borrowed.
#[derive(Debug)]
pub(crate) struct Ended {
    number: u32,
    error: Option<(String, String)>,
    duration_us: i64,
    result: Option<String>,
    result_bytes: i64,
}

/// The ends that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashMap<ExecutionId, (Vec<Ended>, usize)>>);

impl Begun {
    pub(crate) fn new(execution: &ExecutionId, number: u32, call: &ToolCall<'_>) -> Begun {
        let most = call.kept_bytes.min(ARGS_BYTES);
        let seen = if most == 0 { 0 } else { most + SECRET_BYTES };
        Begun {
            execution: execution.clone(),
            number,
            server: head(call.server, NAME_BYTES),
            tool: head(call.tool, NAME_BYTES),
            // Cut behind where it is masked: half a secret would not be known as one. The rest is
            // not looked at, because the call waits for this.
            args: head(&mask(&head(call.args, seen)), most),
            args_bytes: clamped(call.args.len() as u128),
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.args.len()
    }

    /// Whether its execution runs.
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

impl Ended {
    pub(crate) fn new(number: u32, end: &CallEnd<'_>) -> Ended {
        let error = |(code, message): (&str, &str)| {
            (head(code, NAME_BYTES), head(&mask(message), MESSAGE_BYTES))
        };
        let result = end.result.filter(|result| result.len() <= RESULT_BYTES);
        Ended {
            number,
            error: end.error.map(error),
            duration_us: clamped(end.duration.as_micros()),
            result: result.map(|result| mask(result).into_owned()),
            result_bytes: clamped(end.result_bytes.into()),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let error = self.error.as_ref().map_or(0, |(code, message)| code.len() + message.len());
        size_of::<Ended>() + error + self.result.as_ref().map_or(0, String::len)
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

impl Waiting {
    /// Whether so much waits that it should be written now.
    pub(crate) fn push(&self, execution: &ExecutionId, ended: Ended) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (ends, bytes) = waiting.entry(execution.clone()).or_default();
        *bytes += ended.bytes();
        ends.push(ended);
        *bytes > WAITING_BYTES
    }

    pub(crate) fn take(&self, execution: &ExecutionId) -> Vec<Ended> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(execution).unwrap_or_default().0
    }
}

/// The calls of one execution, in order.
pub(crate) fn of(conn: &Connection, execution: i64) -> Result<Vec<Call>> {
    let mut statement =
        conn.prepare_cached("SELECT * FROM calls WHERE execution = ?1 ORDER BY number")?;
    statement.query_map([execution], call)?.collect()
}

fn call(row: &Row<'_>) -> Result<Call> {
    let bytes = |column: &str| -> Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(i64::unsigned_abs))
    };
    Ok(Call {
        number: row.get("number")?,
        server: row.get("server")?,
        tool: row.get("tool")?,
        args: row.get("args")?,
        args_bytes: bytes("args_bytes")?.unwrap_or_default(),
        duration: micros(row, "duration_us")?,
        error_code: row.get("error_code")?,
        message: row.get("message")?,
        result: row.get("result")?,
        result_bytes: bytes("result_bytes")?,
    })
}
