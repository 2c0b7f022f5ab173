//! The statements. Each write is one statement, so it happens wholly or not at all, also in a
//! transaction that it shares with others.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use codexec_types::{Admitted, Changes, Ending, ExecutionId, Limit, Outcome};
use rusqlite::{
    Connection, OptionalExtension, Result, Row, named_params, params,
    types::{FromSqlError, Type},
};

use crate::{
    execution::{Counts, Execution, Finish, Status, Summary},
    owner,
};

/// A guest writes its error's message, so we bound it.
const MESSAGE_BYTES: usize = 16 << 10;

/// A row to be, with nothing borrowed: it goes to the writer's thread.
pub(crate) struct Begun {
    pub(crate) id: ExecutionId,
    language: &'static str,
    code: String,
    input: String,
    wall_ms: i64,
    started_ms: i64,
}

/// What [`Finish`] says, with nothing borrowed.
pub(crate) struct Finished {
    pub(crate) id: ExecutionId,
    status: Status,
    error_code: Option<&'static str>,
    message: Option<String>,
    output: String,
    value: Option<String>,
    tool_calls: u32,
    duration_us: i64,
    posture: String,
    peak_memory_bytes: Option<i64>,
    cpu_us: Option<i64>,
    /// A JSON text.
    changes: Option<String>,
    limits_met: Option<String>,
    exit_code: Option<i32>,
    images: u32,
}

impl Begun {
    pub(crate) fn new(id: &ExecutionId, admitted: &Admitted, started: SystemTime) -> Begun {
        Begun {
            id: id.clone(),
            language: admitted.language().name(),
            code: admitted.code().to_owned(),
            input: admitted.input().text().to_owned(),
            wall_ms: clamped(admitted.limits().wall.as_millis()),
            started_ms: unix_ms(started),
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.code.len() + self.input.len()
    }

    pub(crate) fn insert(&self, conn: &Connection, owner: &str) -> Result<()> {
        let mut statement = conn.prepare_cached(
            "INSERT INTO executions (id, owner, status, started_ms, language, wall_ms, input, code)
             VALUES (:id, :owner, 'running', :started_ms, :language, :wall_ms, :input, :code)",
        )?;
        statement.execute(named_params! {
            ":id": self.id.as_str(),
            ":owner": owner,
            ":started_ms": self.started_ms,
            ":language": self.language,
            ":wall_ms": self.wall_ms,
            ":input": self.input,
            ":code": self.code,
        })?;
        Ok(())
    }
}

impl Finished {
    pub(crate) fn new(id: &ExecutionId, finish: Finish<'_>) -> Finished {
        let (error_code, message, exit_code) = match finish.ending {
            Ending::Outcome(Outcome::Threw(thrown)) => {
                (Some(thrown.code.name()), Some(head(&thrown.message, MESSAGE_BYTES)), None)
            }
            Ending::Outcome(outcome @ Outcome::Exited { code }) => {
                (outcome.code(), Some(format!("exit code {code}")), Some(*code))
            }
            Ending::Outcome(outcome) => (outcome.code(), None, None),
            Ending::Failed { code } => (Some(code), None, None),
        };
        let is_changed = !finish.changes.is_empty();
        let met: Vec<&str> = finish.limits_met.iter().map(|limit| Limit::code(*limit)).collect();
        Finished {
            id: id.clone(),
            status: Status::of(finish.ending),
            error_code,
            message,
            output: finish.output.to_owned(),
            value: finish.value.map(str::to_owned),
            tool_calls: finish.tool_calls,
            duration_us: clamped(finish.duration.as_micros()),
            posture: finish.posture.to_owned(),
            peak_memory_bytes: finish.peak_memory_bytes.map(|bytes| clamped(bytes.into())),
            cpu_us: finish.cpu.map(|cpu| clamped(cpu.as_micros())),
            changes: is_changed.then(|| serde_json::to_string(finish.changes).unwrap_or_default()),
            limits_met: (!met.is_empty()).then(|| met.join(",")),
            exit_code,
            images: finish.images,
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.output.len() + optional(&self.value) + optional(&self.changes)
    }

    /// Whether it was running. A second end changes nothing.
    pub(crate) fn update(&self, conn: &Connection) -> Result<bool> {
        let mut statement = conn.prepare_cached(
            "UPDATE executions SET status = :status, error_code = :error_code, message = :message,
                 output = :output, value = :value, tool_calls = :tool_calls,
                 ended_ms = started_ms + :duration_us / 1000, duration_us = :duration_us,
                 posture = :posture,
                 peak_memory_bytes = :peak_memory_bytes, cpu_us = :cpu_us,
                 changes = :changes, limits_met = :limits_met, exit_code = :exit_code,
                 images = :images
             WHERE id = :id AND status = 'running'",
        )?;
        let changed = statement.execute(named_params! {
            ":id": self.id.as_str(),
            ":status": self.status.name(),
            ":error_code": self.error_code,
            ":message": self.message,
            ":output": self.output,
            ":value": self.value,
            ":tool_calls": self.tool_calls,
            ":duration_us": self.duration_us,
            ":posture": self.posture,
            ":peak_memory_bytes": self.peak_memory_bytes,
            ":cpu_us": self.cpu_us,
            ":changes": self.changes,
            ":limits_met": self.limits_met,
            ":exit_code": self.exit_code,
            ":images": self.images,
        })?;
        Ok(changed == 1)
    }
}

pub(crate) fn get(conn: &Connection, id: &ExecutionId) -> Result<Option<Execution>> {
    let mut statement = conn.prepare_cached("SELECT * FROM executions WHERE id = ?1")?;
    statement.query_row([id.as_str()], execution).optional()
}

/// The newest first.
pub(crate) fn recent(conn: &Connection, limit: u32) -> Result<Vec<Summary>> {
    let mut statement = conn.prepare_cached(
        "SELECT id, language, status, error_code, message, started_ms, ended_ms, duration_us,
             tool_calls, posture, peak_memory_bytes, cpu_us, limits_met, exit_code, images
         FROM executions ORDER BY seq DESC LIMIT ?1",
    )?;
    statement.query_map([limit], summary)?.collect()
}

/// Takes two looks at the ends of the table and one at the small index, however long the
/// history is. Rows only ever leave at the old end, so the numbers have no gaps.
pub(crate) fn counts(conn: &Connection) -> Result<Counts> {
    let mut statement = conn.prepare_cached(
        "SELECT (SELECT count(*) FROM executions WHERE status = 'running'),
             ifnull((SELECT max(seq) FROM executions) - (SELECT min(seq) FROM executions) + 1, 0)",
    )?;
    statement.query_row([], |row| {
        let (running, total): (i64, i64) = (row.get(0)?, row.get(1)?);
        Ok(Counts { running: running.unsigned_abs(), total: total.unsigned_abs() })
    })
}

/// Ends what dead servers left running.
pub(crate) fn interrupt(conn: &Connection, owners: &owner::Folder, now: SystemTime) -> Result<u64> {
    let mut running =
        conn.prepare_cached("SELECT DISTINCT owner FROM executions WHERE status = 'running'")?;
    let running: Vec<String> = running.query_map([], |row| row.get(0))?.collect::<Result<_>>()?;
    let mut changed = 0;
    for owner in running.iter().filter(|owner| !owners.is_alive(owner)) {
        changed += conn.execute(
            "UPDATE executions SET status = 'failed', error_code = 'interrupted', ended_ms = ?2
             WHERE status = 'running' AND owner = ?1",
            params![owner, unix_ms(now)],
        )?;
    }
    Ok(changed as u64)
}

fn execution(row: &Row<'_>) -> Result<Execution> {
    Ok(Execution {
        summary: summary(row)?,
        code: row.get("code")?,
        input: row.get("input")?,
        output: row.get("output")?,
        value: row.get("value")?,
        changes: changes(row)?,
    })
}

fn changes(row: &Row<'_>) -> Result<Changes> {
    let text: Option<String> = row.get("changes")?;
    let parsed = text.map_or_else(|| Ok(Changes::default()), |text| serde_json::from_str(&text));
    parsed.map_err(|err| {
        let at = row.as_ref().column_index("changes").unwrap_or_default();
        rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(err))
    })
}

fn summary(row: &Row<'_>) -> Result<Summary> {
    let micros = |column: &str| -> Result<Option<Duration>> {
        let micros: Option<i64> = row.get(column)?;
        Ok(micros.map(|micros| Duration::from_micros(micros.unsigned_abs())))
    };
    let time = |ms: i64| UNIX_EPOCH + Duration::from_millis(ms.unsigned_abs());
    let started: i64 = row.get("started_ms")?;
    let ended: Option<i64> = row.get("ended_ms")?;
    let peak: Option<i64> = row.get("peak_memory_bytes")?;
    let limits_met: Option<String> = row.get("limits_met")?;
    Ok(Summary {
        id: word(row, "id", ExecutionId::parse)?,
        language: row.get("language")?,
        status: word(row, "status", Status::parse)?,
        error_code: row.get("error_code")?,
        message: row.get("message")?,
        started: time(started),
        ended: ended.map(time),
        duration: micros("duration_us")?,
        tool_calls: row.get("tool_calls")?,
        posture: row.get("posture")?,
        peak_memory_bytes: peak.map(i64::unsigned_abs),
        cpu: micros("cpu_us")?,
        limits_met: limits_met.iter().flat_map(|met| met.split(',').map(str::to_owned)).collect(),
        exit_code: row.get("exit_code")?,
        images: row.get("images")?,
    })
}

fn word<T>(row: &Row<'_>, column: &str, parse: fn(&str) -> Option<T>) -> Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| {
        let at = row.as_ref().column_index(column).unwrap_or_default();
        let unknown = FromSqlError::Other(format!("unknown {column} {text:?}").into());
        rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(unknown))
    })
}

fn unix_ms(time: SystemTime) -> i64 {
    clamped(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis())
}

fn clamped(number: u128) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The beginning of a text, never cut inside a character.
fn head(text: &str, max_bytes: usize) -> String {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default().to_owned()
}
