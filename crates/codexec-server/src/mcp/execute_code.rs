use std::sync::Arc;
use std::time::Duration;

use codexec_types::{Asked, Json, Language, Policy};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, MetaObject};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::content;
use super::fields::{FieldError, Fields};
use super::talk::{self, Said, Talk, Watched};
use crate::{App, Budget, ExecuteError, Execution, Progress, Wanted, failure, reply};

pub(super) fn begin(
    app: &Arc<App>,
    arguments: Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<Talk, FieldError> {
    let wanted = wanted(arguments, &app.in_force.policy())?;
    let (sender, receiver) = watch::channel(Progress::default());
    let (caller, questions) = talk::caller(context);
    let (runner, cancel) = (Arc::clone(app), CancellationToken::new());
    let token = cancel.clone();
    // A task of its own, so that a client that leaves cancels by token and never by drop.
    let running = tokio::spawn(async move {
        let executed = runner.execute(wanted, token, sender, caller).await;
        Said::Ours(Box::new(result(executed)))
    });
    let mut talk = Talk::new(running, cancel, Watched::execution(receiver), questions);
    talk.names_servers = true;
    Ok(talk)
}

fn result(executed: Result<Execution, ExecuteError>) -> CallToolResult {
    match executed {
        Ok(execution) => {
            let mut result = content(reply(&execution, Budget::DEFAULT));
            result.meta = Some(meta(&execution));
            result
        }
        Err(error) => {
            tracing::debug!(%error, code = error.code(), "not executed");
            content(failure(&error))
        }
    }
}

fn wanted(arguments: Map<String, Value>, policy: &Policy) -> Result<Wanted, FieldError> {
    let mut fields = Fields::new(arguments);
    let code = fields.required_text("code")?;
    let names = Language::ALL.map(|language| (language.name(), language));
    let short = Language::ALL.map(|language| (language.short(), language));
    let language = fields.choice("language", &[names, short].concat())?;
    let input = fields.take("input").map_or_else(Json::null, |value| Json::from_value(&value));
    let working_dir = fields.text("working_dir")?.map(Into::into);
    let max_ms = u64::try_from(policy.max_wall.as_millis()).unwrap_or(u64::MAX);
    let wall = fields.number("timeout_ms", 1..=max_ms)?.map(Duration::from_millis);
    let allowed_tools = fields.texts("allowed_tools")?;
    let allowed_servers = fields.texts("allowed_servers")?;
    let most = u64::from(policy.limits.tool_calls);
    let calls = fields.number("max_tool_calls", 0..=most)?;
    let tool_calls = calls.and_then(|calls| u32::try_from(calls).ok());
    fields.finish()?;
    Ok(Wanted {
        language: language.unwrap_or(Language::TypeScript),
        code,
        input,
        args: Vec::new(),
        working_dir,
        asked: Asked { wall, tool_calls, allowed_tools, allowed_servers },
    })
}

/// For programs; agents do not see it.
fn meta(execution: &Execution) -> MetaObject {
    let mut meta = MetaObject::default();
    let about = json!({
        "id": execution.id.as_str(),
        "duration_ms": execution.duration.as_secs_f64() * 1e3,
        "tool_calls": execution.usage.tool_calls,
        "cpu_ms": execution.usage.cpu.as_secs_f64() * 1e3,
        "peak_memory_bytes": execution.usage.peak_memory_bytes,
        "limits_met": execution.limits_met.iter().map(|limit| limit.code()).collect::<Vec<_>>(),
    });
    meta.0.insert("codexec/execution".to_owned(), about);
    meta
}
