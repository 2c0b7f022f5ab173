use codexec_functions::defaults::LIST_LENGTH;
use codexec_store::{
    CallRecord, CoarseStatus, ExecutionRecord, ExecutionSummary, LogMatch, LogQuery,
};
use codexec_types::{ExecutionId, Grant, Limit, SessionId, format_rfc3339, parse_time};
use serde_json::{Value, json};

use super::running::read_language;
use super::sessions::mebibytes;
use super::{OwnFunctionError, shape};
use crate::escaped_text::escape_name;
use crate::fields::Fields;
use crate::{App, Client, TextBudget};

const MAX_LIMIT: u64 = 100;
const MAX_OFFSET: u64 = 1_000_000_000;
const PREVIEW_CHARS: usize = 200;

impl App {
    pub(super) async fn search_execution_logs(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let language = read_language(&mut fields)?.map(|language| language.name().to_owned());
        let status = fields.choice("status", &CoarseStatus::ALL.map(|kind| (kind.name(), kind)))?;
        let text = fields.text("query")?;
        let since = read_time(&mut fields, "since")?;
        let until = read_time(&mut fields, "until")?;
        let session = match fields.text("session_id")? {
            Some(text) => Some(SessionId::parse(&text).ok_or_else(|| {
                let text: String = text.chars().take(60).collect();
                OwnFunctionError::invalid(format!(
                    "session_id: {text:?} is not allowed; it must be like sess_<32 hex digits>"
                ))
            })?),
            None => None,
        };
        let tool = fields.text("tool")?;
        let limit = fields.number("limit", 1..=MAX_LIMIT)?.unwrap_or(LIST_LENGTH);
        let offset = fields.number("offset", 0..=MAX_OFFSET)?.unwrap_or(0);
        fields.finish()?;
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let agent = None;
        let query =
            LogQuery { language, status, text, since, until, session, agent, tool, limit, offset };
        let page = self.records.store().await?.search(&query, &client.read_scope()).await?;
        let results: Vec<Value> = page.results.iter().map(result_entry).collect();
        Ok(json!({"results": results, "total_count": page.total}))
    }

    pub(super) async fn get_execution_log(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let text = fields.required_text("execution_id")?;
        fields.finish()?;
        let reads_all = client.may(Grant::AllLogs);
        // An execution of another client gets the same answer as one that never existed.
        let missing = || {
            let text = escape_name(&text.chars().take(80).collect::<String>());
            let message = match reads_all {
                true => format!(
                    "execution_id: there is no execution {text:?}; use search_execution_logs to find \
                     executions"
                ),
                false => format!(
                    "execution_id: this client has no execution {text:?} since codexec was \
                     started, and code reads no other logs; {}",
                    Grant::AllLogs.describe_how_to_grant()
                ),
            };
            OwnFunctionError::new("EXECUTION_NOT_FOUND", message)
        };
        let id = ExecutionId::parse(&text).ok_or_else(missing)?;
        let store = self.records.store().await?;
        let execution = store.get(&id, &client.read_scope()).await?.ok_or_else(missing)?;
        let budget = client.text_budget();
        let write = move || full_log(&execution, budget);
        self.gateway
            .run_blocking(write)
            .await
            .map_err(|err| OwnFunctionError::new("INTERNAL", err.message))
    }
}

fn result_entry(found: &LogMatch) -> Value {
    let summary = &found.summary;
    json!({
        "execution_id": summary.id.as_str(),
        "session_id": summary.session.as_ref().map(SessionId::as_str),
        "language": summary.language,
        "code_preview": preview(&found.code),
        "status": summary.kind.name(),
        "exit_code": summary.exit_status(),
        "error_preview": found.error.clone().or_else(|| describe_end(summary)).map(|error| preview(&error)),
        "duration_ms": summary.duration.map(shape::milliseconds),
        "executed_at": format_rfc3339(summary.started),
    })
}

/// Formats the complete record, with texts cut to the budget.
fn full_log(execution: &ExecutionRecord, budget: Option<TextBudget>) -> Value {
    let summary = &execution.summary;
    let mut is_cut = false;
    let mut fitted = |text: &str| {
        let (text, cut) = shape::cut(text, budget);
        is_cut |= cut;
        text
    };
    let written = execution.written.clone().unwrap_or_default();
    let (stdout, stderr) = (fitted(&written.stdout()), fitted(&written.stderr()));
    let (code, value) = (fitted(&execution.code), execution.value.as_deref().map(&mut fitted));
    let paths = |files: &[codexec_types::Artifact]| -> Vec<String> {
        files.iter().map(|file| escape_name(&file.path)).collect()
    };
    let mut log = json!({
        "execution_id": summary.id.as_str(),
        "session_id": summary.session.as_ref().map(SessionId::as_str),
        "language": summary.language,
        "code": code,
        "stdout": stdout,
        "stderr": stderr,
        "exit_code": summary.exit_status(),
        "duration_ms": summary.duration.map(shape::milliseconds),
        "packages_installed": execution.packages,
        "artifacts_created": paths(&execution.changes.created),
        "artifacts_modified": paths(&execution.changes.modified),
        "artifacts_deleted": paths(&execution.changes.deleted),
        "sandbox_mode": "process",
        "guardian_pre_scan": null,
        "guardian_post_scan": null,
        "agent_id": execution.context.agent_id,
        "trace_id": execution.context.trace_id,
        "executed_at": format_rfc3339(summary.started),
        "status": summary.kind.name(),
    });
    let Some(fields) = log.as_object_mut() else { return log };
    let calls: Vec<Value> = execution.calls.iter().map(call_entry).collect();
    let more = [
        ("error_code", json!(summary.error_code)),
        ("error", json!(summary.message.clone().or_else(|| describe_end(summary)))),
        ("result", json!(value.filter(|text| text != "null"))),
        ("chat_id", json!(execution.context.chat_id)),
        ("script", json!(summary.script.as_ref().map(|(name, _)| name))),
        ("script_version", json!(summary.script.as_ref().map(|(_, version)| version))),
        ("tool_calls", json!((!calls.is_empty()).then_some(calls))),
        ("limits_met", json!((!summary.limits_met.is_empty()).then_some(&summary.limits_met))),
        ("sandbox_layers", json!(summary.posture)),
        ("memory_peak_mb", json!(summary.peak_memory_bytes.map(mebibytes))),
        ("working_dir", json!(execution.working_dir)),
        ("allowed_tools", json!(execution.allowed_tools)),
        ("grants", json!((!execution.grants.is_empty()).then_some(&execution.grants))),
        ("truncated", json!(is_cut.then_some(true))),
    ];
    let more = more.into_iter().filter(|(_, value)| !value.is_null());
    fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
    log
}

fn call_entry(call: &CallRecord) -> Value {
    json!({
        "server": call.server,
        "tool": call.tool,
        "duration_ms": call.duration.map(shape::milliseconds),
        "error_code": call.error_code,
        "result_bytes": call.result_bytes,
    })
}

/// Describes the end of an execution that was stopped and has no message of its own.
fn describe_end(summary: &ExecutionSummary) -> Option<String> {
    let code = summary.error_code.as_deref()?;
    let ms = summary.duration.map_or(0, |duration| duration.as_millis());
    Some(match code == Limit::Wall.code() {
        true => format!("{code}: stopped after {ms} ms"),
        false => format!("{code}: ended after {ms} ms"),
    })
}

fn preview(text: &str) -> String {
    text.chars().take(PREVIEW_CHARS).collect()
}

fn read_time(
    fields: &mut Fields,
    field: &'static str,
) -> Result<Option<std::time::SystemTime>, OwnFunctionError> {
    let Some(text) = fields.text(field)? else { return Ok(None) };
    let time = parse_time(&text).ok_or_else(|| {
        let text: String = text.chars().take(60).collect();
        OwnFunctionError::invalid(format!(
            "{field}: {text:?} is not a valid time; write it like 2026-02-09 or 2026-02-09T14:30:00Z"
        ))
    })?;
    Ok(Some(time))
}
