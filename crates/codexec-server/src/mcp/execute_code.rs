use std::sync::Arc;
use std::time::Duration;

use codexec_types::{Asked, Json, Language, Policy};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, MetaObject, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::content;
use super::fields::{FieldError, Fields};
use crate::{App, Budget, Execution, Progress, Reply, Wanted, failure, reply};

/// How often a client that asked for it hears that the code still runs.
const HEARTBEAT: Duration = Duration::from_secs(2);

pub(super) async fn call(
    app: &Arc<App>,
    arguments: Map<String, Value>,
    context: RequestContext<RoleServer>,
) -> CallToolResult {
    let wanted = match wanted(arguments, &app.in_force.policy()) {
        Ok(wanted) => wanted,
        Err(error) => {
            return content(Reply::error(format!("INVALID_ARGS: {error}")));
        }
    };
    let (sender, receiver) = watch::channel(Progress::default());
    let (runner, cancel) = (Arc::clone(app), context.ct.clone());
    // A task of its own, so that a client that leaves cancels by token and never by drop.
    let mut running = tokio::spawn(async move { runner.execute(wanted, cancel, sender).await });
    let token = context.meta.get_progress_token();
    let executed = tokio::select! {
        executed = &mut running => executed,
        never = report(&context, token, receiver) => match never {},
    };
    match executed {
        Ok(Ok(execution)) => {
            let mut result = content(reply(&execution, Budget::DEFAULT));
            result.meta = Some(meta(&execution));
            result
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, code = error.code(), "not executed");
            content(failure(&error))
        }
        Err(_) => {
            let sorry = "INTERNAL_ERROR: this execution ended by a fault of codexec's own";
            content(Reply::error(sorry.to_owned()))
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
        working_dir,
        asked: Asked { wall, tool_calls, allowed_tools, allowed_servers },
    })
}

/// Tells the client, if it asked, whenever something happened and at every heartbeat.
async fn report(
    context: &RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    mut progress: watch::Receiver<Progress>,
) -> std::convert::Infallible {
    let Some(token) = token else { return std::future::pending().await };
    let begun = Instant::now();
    let mut heartbeat = interval_at(begun + HEARTBEAT, HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_ms = 0;
    loop {
        let is_over = tokio::select! {
            changed = progress.changed() => changed.is_err(),
            _ = heartbeat.tick() => false,
        };
        if is_over {
            return std::future::pending().await;
        }
        let Progress { tool_calls, message } = progress.borrow_and_update().clone();
        let elapsed_ms = begun.elapsed().as_millis();
        // It has to increase every time.
        last_ms = elapsed_ms.max(last_ms + 1);
        let seconds = elapsed_ms / 1000;
        let message = message.unwrap_or_else(|| format!("{seconds} s, {tool_calls} tool calls"));
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of minutes fit")]
        let params =
            ProgressNotificationParam::new(token.clone(), last_ms as f64).with_message(message);
        // A client that does not listen misses something, no more.
        let _ = context.peer.notify_progress(params).await;
    }
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
