//! The audit log line of an execution.

use std::time::SystemTime;

use codexec_store::mask;
use codexec_types::{Language, format_rfc3339};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::calls::CallSummaries;
use super::result::error_text;
use crate::{App, Client, ExecutionRequest, FinishedExecution};

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

pub(super) async fn log_execution(
    app: &App,
    about: &CodeInfo,
    execution: &FinishedExecution,
    calls: &CallSummaries,
    client: &Client,
) {
    let error = execution.outcome.code().map(|_| error_text(execution, app.budget));
    let error = error.map(|error| error.chars().take(MAX_ERROR_CHARS).collect::<String>());
    let line = json!({
        "timestamp": format_rfc3339(SystemTime::now()),
        "action": "execution",
        "executor": about.language.name(),
        "codeHash": about.code_hash,
        "codeLength": about.code_length,
        "allowedTools": about.allowed_tools,
        "toolsCalled": calls.names(),
        "executionId": execution.id.as_str(),
        "executionTimeMs": u64::try_from(execution.duration.as_millis()).unwrap_or(u64::MAX),
        "success": error.is_none(),
        "error": error.as_deref().map(mask),
        "clientId": client.name(),
        "memoryUsage": execution.usage.peak_memory_bytes,
    });
    app.audit(&line).await;
}
