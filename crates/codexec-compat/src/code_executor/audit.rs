//! The audit log lines of executions and discoveries.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use codexec_server::{
    Client, DiscoveryObserver, ExecutionRequest, FinishedDiscovery, FinishedExecution,
};
use codexec_store::mask;
use codexec_types::{Language, format_rfc3339};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::audit_log::AuditLog;
use super::calls::CallSummaries;

const MAX_ERROR_CHARS: usize = 1_000;

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
    error: Option<String>,
    calls: &CallSummaries,
    client: &Client,
) -> Value {
    let error = error.map(|error| error.chars().take(MAX_ERROR_CHARS).collect::<String>());
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
        "error": error.as_deref().map(mask),
        "clientId": client.name(),
        "memoryUsage": execution.usage.peak_memory_bytes,
    })
}

/// Returns the observer that logs every discovery.
pub(super) fn discovery_observer(log: &Arc<AuditLog>) -> DiscoveryObserver {
    let log = Arc::clone(log);
    Arc::new(move |discovery| {
        let log = Arc::clone(&log);
        Box::pin(async move { log.append(&discovery_line(&discovery)).await })
    })
}

fn discovery_line(discovery: &FinishedDiscovery) -> Value {
    json!({
        "timestamp": format_rfc3339(SystemTime::now()),
        "action": "discovery",
        "function": discovery.function,
        "searchTerms": discovery.search_terms,
        "resultsCount": discovery.results,
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
