//! The audit log lines of executions and discoveries.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use codexec_server::{
    Client, ExecutionRequest, FinishedDiscovery, FinishedExecution, ReportedCall, RequestObserver,
    RequestObservers,
};
use codexec_store::mask;
use codexec_types::{Language, format_rfc3339};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::audit_log::AuditLog;
use super::calls::{self, CallSummaries};

/// Code names tools as it likes.
const MAX_NAME_CHARS: usize = 200;

/// The code's properties for the log: never the code itself.
pub(super) struct CodeInfo {
    language: Language,
    code_hash: String,
    code_length: usize,
    allowed_tools: Vec<String>,
}

impl CodeInfo {
    pub(super) fn of(request: &ExecutionRequest, allowed_tools: Vec<String>) -> CodeInfo {
        let digest = Sha256::digest(request.code.as_bytes());
        CodeInfo {
            language: request.language,
            code_hash: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            code_length: request.code.chars().count(),
            allowed_tools,
        }
    }
}

pub(super) fn execution_line(
    about: &CodeInfo,
    execution: &FinishedExecution,
    calls: &CallSummaries,
    client: &Client,
) -> Value {
    let error = execution.outcome.code();
    json!({
        "timestamp": format_rfc3339(SystemTime::now()),
        "action": "execution",
        "executor": about.language.name(),
        "codeHash": about.code_hash,
        "codeLength": about.code_length,
        "allowedTools": about.allowed_tools,
        "toolsCalled": calls.names(),
        "executionId": execution.id.as_str(),
        "executionTimeMs": milliseconds(execution.duration),
        "success": error.is_none(),
        // Only the code: messages and tracebacks quote the source text.
        "error": error,
        "clientId": client.name(),
        "memoryUsage": execution.usage.peak_memory_bytes,
    })
}

/// Returns the observers that log every discovery and every call.
pub(super) fn observers(log: Option<&Arc<AuditLog>>) -> RequestObservers {
    match log {
        Some(log) => RequestObservers {
            discovery: Some(observer(log, discovery_line)),
            call: Some(observer(log, call_line)),
        },
        None => RequestObservers::default(),
    }
}

fn observer<T: Send + 'static>(log: &Arc<AuditLog>, line: fn(&T) -> Value) -> RequestObserver<T> {
    let log = Arc::clone(log);
    Arc::new(move |request| {
        let log = Arc::clone(&log);
        Box::pin(async move { log.append(&line(&request)).await })
    })
}

fn call_line(call: &ReportedCall) -> Value {
    json!({
        "timestamp": format_rfc3339(SystemTime::now()),
        "action": "call",
        "toolName": shorten(&calls::tool_name(&call.server, &call.tool)),
        "executionId": call.execution.as_str(),
        "executionTimeMs": milliseconds(call.duration),
        "success": call.error.is_none(),
        "error": call.error,
        "clientId": call.client,
    })
}

fn shorten(name: &str) -> String {
    mask(&name.chars().take(MAX_NAME_CHARS).collect::<String>()).into_owned()
}

fn discovery_line(discovery: &FinishedDiscovery) -> Value {
    json!({
        "timestamp": format_rfc3339(SystemTime::now()),
        "action": "discovery",
        "function": discovery.function,
        "searchTerms": discovery.search_terms,
        "count": discovery.results,
        "executionId": discovery.execution.as_str(),
        "executionTimeMs": milliseconds(discovery.duration),
        "success": discovery.error.is_none(),
        "error": discovery.error.as_deref().map(mask),
        "clientId": discovery.client,
    })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
