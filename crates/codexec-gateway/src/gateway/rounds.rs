//! A call may take several rounds: a server of the newer kind gives back questions instead of a
//! result, and is called again with the answers.

use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, InputResponses};
use serde_json::{Map, Value};

use crate::{
    Caller,
    tool::Tool,
    upstream::{Connection, QUESTIONS, Upstream, UpstreamError, Waiting},
};

/// Calls until there is a result.
pub(super) async fn call_to_the_end(
    upstream: &Upstream,
    connection: &Connection,
    tool: &Arc<Tool>,
    params: CallToolRequestParams,
    caller: &Caller,
) -> Result<Value, UpstreamError> {
    if !caller.can_answer() {
        return upstream.call(connection, tool, params, None).await;
    }
    let waiting = upstream.enter(caller);
    let mut next = params.clone();
    for _ in 0..=QUESTIONS {
        let result = upstream.call(connection, tool, next, Some(&waiting)).await?;
        if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
            return Ok(result);
        }
        next = params.clone();
        next.request_state = text(&result, "requestState");
        next.input_responses = answers(upstream, &result, &waiting).await?;
        if next.request_state.is_none() && next.input_responses.is_none() {
            let why = "it wants input and does not say which".to_owned();
            return Err(UpstreamError::Refused(why));
        }
    }
    let why = format!("it wanted input more than {QUESTIONS} times");
    Err(UpstreamError::Refused(why))
}

async fn answers(
    upstream: &Upstream,
    result: &Value,
    waiting: &Waiting<'_>,
) -> Result<Option<InputResponses>, UpstreamError> {
    let Some(requests) = result.get("inputRequests").and_then(Value::as_object) else {
        return Ok(None);
    };
    let mut responses = InputResponses::new();
    for (key, request) in requests {
        let method = text(request, "method").unwrap_or_default();
        if method != "elicitation/create" {
            let method = crate::clean::cut(&crate::clean::clean_line(&method), 100);
            let why = format!("it wants {method:?} of us, which is not supported");
            return Err(UpstreamError::Refused(why));
        }
        let params = match request.get("params") {
            Some(Value::Object(params)) => params.clone(),
            Some(_) | None => Map::new(),
        };
        responses.insert(key.clone(), waiting.ask(upstream.name(), params).await);
    }
    Ok(Some(responses))
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}
