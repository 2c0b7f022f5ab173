//! Summarises the tool calls of an execution, from its record.

use std::time::Duration;

use codexec_store::Call;
use serde_json::{Map, Value};

use crate::discovery::RECORDED_AS;
use crate::plain::plain;
use crate::{App, Execution};

/// Maximum number of different tools in a result.
const MAX_TOOLS: usize = 100;
const MAX_ERROR_CHARS: usize = 500;

/// The tools that were called, in the order of their first calls.
#[derive(Default)]
pub(super) struct Calls(Vec<Summary>);

struct Summary {
    name: String,
    successes: u64,
    errors: u64,
    total: Duration,
    last: Option<Duration>,
    /// The error message, if the last call failed.
    last_error: Option<String>,
    /// The error message of the last call that failed.
    any_error: Option<String>,
}

impl Calls {
    pub(super) async fn of(app: &App, execution: &Execution) -> Calls {
        if execution.usage.tool_calls == 0 {
            return Calls::default();
        }
        let record = match app.records.store().await {
            Ok(store) => store.get(&execution.id).await,
            Err(error) => Err(error),
        };
        match record {
            Ok(Some(record)) => Calls::from_record(&record.calls),
            Ok(None) => Calls::default(),
            Err(error) => {
                tracing::warn!(%error, "the tool calls of an execution cannot be read");
                Calls::default()
            }
        }
    }

    fn from_record(calls: &[Call]) -> Calls {
        let mut found: Vec<Summary> = Vec::new();
        for call in calls.iter().filter(|call| went_out(call)) {
            let name = name(call);
            if let Some(known) = found.iter_mut().find(|summary| summary.name == name) {
                known.add(call);
            } else if found.len() < MAX_TOOLS {
                let mut new = Summary::new(name);
                new.add(call);
                found.push(new);
            }
        }
        Calls(found)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|summary| summary.name.as_str()).collect()
    }

    pub(super) fn summaries(&self) -> Vec<Value> {
        self.0.iter().map(Summary::value).collect()
    }
}

impl Summary {
    fn new(name: String) -> Summary {
        let (last, last_error, any_error) = (None, None, None);
        Summary {
            name,
            successes: 0,
            errors: 0,
            total: Duration::ZERO,
            last,
            last_error,
            any_error,
        }
    }

    fn add(&mut self, call: &Call) {
        let error = match (&call.error_code, call.duration) {
            (None, Some(_)) => None,
            (None, None) => Some("no answer before the execution ended".to_owned()),
            (Some(code), _) => Some(call.message.clone().unwrap_or_else(|| code.clone())),
        };
        match &error {
            Some(_) => self.errors += 1,
            None => self.successes += 1,
        }
        if error.is_some() {
            self.any_error.clone_from(&error);
        }
        self.total += call.duration.unwrap_or_default();
        (self.last, self.last_error) = (call.duration, error);
    }

    fn value(&self) -> Value {
        let count = self.successes + self.errors;
        let mut value = Map::new();
        let mut put = |name: &str, field: Value| value.insert(name.to_owned(), field);
        put("toolName", self.name.as_str().into());
        put("callCount", count.into());
        put("successCount", self.successes.into());
        put("errorCount", self.errors.into());
        put("totalDurationMs", milliseconds(self.total).into());
        let calls = u32::try_from(count).unwrap_or(u32::MAX).max(1);
        put("averageDurationMs", milliseconds(self.total / calls).into());
        if let Some(last) = self.last {
            put("lastCallDurationMs", milliseconds(last).into());
        }
        let status = if self.last_error.is_some() { "error" } else { "success" };
        put("lastCallStatus", status.into());
        if let Some(error) = &self.any_error {
            let error: String = error.chars().take(MAX_ERROR_CHARS).collect();
            put("lastErrorMessage", error.into());
        }
        Value::Object(value)
    }
}

/// True if the call reached a server: it was not refused before, and is not a discovery.
fn went_out(call: &Call) -> bool {
    const NEVER_MADE: [&str; 5] = [
        "INVALID_ARGS",
        "SERVER_NOT_ALLOWED",
        "TOOL_NOT_ALLOWED",
        "TOOL_NOT_FOUND",
        "TOOL_QUARANTINED",
    ];
    let code = call.error_code.as_deref().unwrap_or_default();
    call.server != RECORDED_AS && !NEVER_MADE.contains(&code)
}

/// Returns the name in this toolset's format, however the code wrote it.
fn name(call: &Call) -> String {
    let tool = plain(&call.tool);
    match (call.server.as_str(), tool.strip_prefix("mcp__"), tool.split_once([':', '.', '/'])) {
        ("", Some(_), _) | ("", None, None) => tool,
        ("", None, Some((server, tool))) => format!("mcp__{server}__{tool}"),
        (server, ..) => format!("mcp__{}__{tool}", plain(server)),
    }
}

/// Rounds to three decimal places.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests;
