//! Summarises the tool calls of an execution, from its record.

use std::time::Duration;

use codexec_server::{App, Client, DISCOVERY_SERVER, FinishedExecution, escape_name};
use codexec_store::CallRecord;
use serde_json::{Map, Value};

/// Maximum number of different tools in a result.
const MAX_TOOLS: usize = 100;
const MAX_ERROR_CHARS: usize = 500;

/// The tools that were called, in the order of their first calls.
#[derive(Default)]
pub(super) struct CallSummaries(Vec<ToolSummary>);

struct ToolSummary {
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

impl CallSummaries {
    pub(super) async fn of(
        app: &App,
        client: &Client,
        execution: &FinishedExecution,
    ) -> CallSummaries {
        if execution.usage.tool_calls == 0 {
            return CallSummaries::default();
        }
        let record = match app.records.store().await {
            Ok(store) => store.get(&execution.id, &client.read_scope()).await,
            Err(error) => Err(error),
        };
        match record {
            Ok(Some(record)) => CallSummaries::from_record(&record.calls),
            Ok(None) => CallSummaries::default(),
            Err(error) => {
                tracing::warn!(%error, "the tool calls of an execution cannot be read");
                CallSummaries::default()
            }
        }
    }

    fn from_record(calls: &[CallRecord]) -> CallSummaries {
        let mut found: Vec<ToolSummary> = Vec::new();
        for call in calls.iter().filter(|call| reached_server(call)) {
            let name = tool_name(&call.server, &call.tool);
            if let Some(known) = found.iter_mut().find(|summary| summary.name == name) {
                known.add(call);
            } else if found.len() < MAX_TOOLS {
                let mut new = ToolSummary::new(name);
                new.add(call);
                found.push(new);
            }
        }
        CallSummaries(found)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|summary| summary.name.as_str()).collect()
    }

    pub(super) fn summaries(&self) -> Vec<Value> {
        self.0.iter().map(ToolSummary::value).collect()
    }
}

impl ToolSummary {
    fn new(name: String) -> ToolSummary {
        let (last, last_error, any_error) = (None, None, None);
        ToolSummary {
            name,
            successes: 0,
            errors: 0,
            total: Duration::ZERO,
            last,
            last_error,
            any_error,
        }
    }

    fn add(&mut self, call: &CallRecord) {
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
fn reached_server(call: &CallRecord) -> bool {
    const NOT_SENT: [&str; 8] = [
        "CIRCUIT_OPEN",
        "INVALID_ARGS",
        "RATE_LIMITED",
        "SERVER_NOT_ALLOWED",
        "SERVICE_UNAVAILABLE",
        "TOOL_NOT_ALLOWED",
        "TOOL_NOT_FOUND",
        "TOOL_QUARANTINED",
    ];
    let code = call.error_code.as_deref().unwrap_or_default();
    call.server != DISCOVERY_SERVER && !NOT_SENT.contains(&code)
}

/// Returns the name in this toolset's format, however the code wrote it.
pub(super) fn tool_name(server: &str, tool: &str) -> String {
    let tool = escape_name(tool);
    match (server, tool.strip_prefix("mcp__"), tool.split_once([':', '.', '/'])) {
        ("", Some(_), _) | ("", None, None) => tool,
        ("", None, Some((server, tool))) => format!("mcp__{server}__{tool}"),
        (server, ..) => format!("mcp__{}__{tool}", escape_name(server)),
    }
}

/// Rounds to three decimal places.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests;
