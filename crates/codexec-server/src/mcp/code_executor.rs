//! The toolset `code-executor`: the tools of Code Executor MCP, in its format.

mod audit;
mod calls;
mod health;
mod permissions;
mod refusal;
mod request;
mod result;
mod tools;

use std::sync::Arc;
use std::time::Instant;

use codexec_types::Language;
use rmcp::RoleServer;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

use self::calls::CallSummaries;
use self::refusal::ExecutorRefusal;
use self::request::ExecutorRequest;
pub(super) use self::tools::tools;
use super::codexec::start_call;
use super::pending_call::{CallOutcome, PendingCall};
use crate::{App, Client};

/// True for every tool name, including the older ones with hyphens.
pub(super) fn is_tool(name: &str) -> bool {
    language(name).is_some() || name == "health"
}

fn language(tool: &str) -> Option<Language> {
    match tool {
        "executeTypescript" | "run-typescript-code" => Some(Language::TypeScript),
        "executePython" | "run-python-code" => Some(Language::Python),
        _ => None,
    }
}

pub(super) fn begin(
    app: &Arc<App>,
    name: String,
    arguments: Map<String, Value>,
    context: &RequestContext<RoleServer>,
    started: Instant,
) -> PendingCall {
    start_call(app, context, move |app, client| async move {
        let done = match language(&name) {
            Some(language) => execute(&app, language, arguments, &client).await,
            None => health::report(&app, arguments, started).await,
        };
        CallOutcome::Own(Box::new(done.unwrap_or_else(|refusal| refusal.result())))
    })
}

async fn execute(
    app: &App,
    language: Language,
    arguments: Map<String, Value>,
    client: &Client,
) -> Result<CallToolResult, ExecutorRefusal> {
    let ExecutorRequest { request, allowed_tools } =
        ExecutorRequest::read(app, language, arguments).await?;
    let about = audit::CodeInfo::of(&request, allowed_tools);
    let execution = app.execute(request, client).await?;
    let calls = CallSummaries::of(app, &execution).await;
    audit::log_execution(app, &about, &execution, &calls, client).await;
    Ok(result::result(&execution, &calls, app.budget))
}
