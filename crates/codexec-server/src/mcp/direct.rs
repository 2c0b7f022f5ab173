//! The toolset `direct`: the upstream tools themselves.

mod changes;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use codexec_gateway::DirectTool;
use codexec_types::{CallCode, CallError};
use rmcp::model::PaginatedRequestParams;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

pub(super) use self::changes::{KnownList, ListChangeDetector, ToolListSource};
use super::pending_call::{CallOutcome, PendingCall};
use super::raw_result::is_modern;
use super::tool_request::ToolRequest;
use super::tool_result;
use crate::denial::explain_settings;
use crate::{App, Connection, ToolReply};

/// The list may change. Clients that are notified need not list again before that.
const TOOLS_TTL_MS: u64 = 60 * 1_000;
/// A page ends after the tool with which it reaches this length.
const PAGE_BYTES: usize = 2 << 20;

/// Returns the requested page of `first`, followed by all upstream tools.
pub(super) async fn list(
    app: &App,
    connection: &Connection,
    first: Vec<Value>,
    request: Option<PaginatedRequestParams>,
    known_list: &KnownList,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let tools = app.gateway.list_direct_tools(&connection.policy().tools).await;
    known_list.set(hash_tools(&tools));
    let tools = first.into_iter().chain(tools.into_iter().map(|tool| tool.definition));
    page(&tools.collect::<Vec<_>>(), request, context)
}

/// Returns the requested page of these definitions.
pub(super) fn page(
    tools: &[Value],
    request: Option<PaginatedRequestParams>,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let begin = match request.and_then(|request| request.cursor) {
        None => 0,
        Some(cursor) => cursor.parse().ok().filter(|at| *at < tools.len()).ok_or_else(|| {
            let message = "cursor: there is no such page; list without a cursor";
            ErrorData::invalid_params(message, None)
        })?,
    };
    let mut bytes = 0;
    let is_within = |tool: &&Value| {
        let fits = bytes < PAGE_BYTES;
        bytes += tool.to_string().len();
        fits
    };
    let page: Vec<&Value> = tools.iter().skip(begin).take_while(is_within).collect();
    let end = begin + page.len();
    let mut result = json!({"tools": page, "ttlMs": TOOLS_TTL_MS});
    if let Some(result) = result.as_object_mut() {
        if end < tools.len() {
            result.insert("nextCursor".to_owned(), end.to_string().into());
        }
        if is_modern(context) {
            result.insert("cacheScope".to_owned(), "private".into());
        }
    }
    Ok(result)
}

/// Hashes a tool list, to detect changes.
pub(super) fn hash_tools(tools: &[DirectTool]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for tool in tools {
        tool.definition.to_string().hash(&mut hasher);
    }
    hasher.finish()
}

pub(super) fn begin(
    name: &str,
    arguments: Map<String, Value>,
    request: &ToolRequest<'_>,
) -> PendingCall {
    request.start_upstream(name.to_owned(), arguments, to_outcome)
}

pub(super) fn to_outcome(name: &str, called: Result<Value, CallError>) -> CallOutcome {
    match called {
        Ok(result) => CallOutcome::Upstream(result),
        Err(error) if error.code == CallCode::ToolNotFound => {
            let name: String = name.chars().take(200).collect();
            let message = format!("there is no tool {name:?} here; tools/list has all there are");
            CallOutcome::Refused(ErrorData::invalid_params(message, None))
        }
        Err(error) => error_outcome(&error),
    }
}

/// Formats the error of an upstream call as a result, so that an agent can read it.
pub fn error_outcome(error: &CallError) -> CallOutcome {
    let code = serde_json::to_value(error.code).unwrap_or_default();
    let code = code.as_str().unwrap_or("ERROR");
    let text = format!("{code}: {}", explain_settings(error.clone()).message);
    CallOutcome::own(tool_result(ToolReply::error(text)))
}

pub(super) fn cancelled() -> CallError {
    CallError::new(CallCode::UpstreamError, "the call was cancelled")
}
