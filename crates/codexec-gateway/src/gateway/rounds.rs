//! Multi-round calls: a server with the newer protocol may return questions instead of a result,
//! and is called again with the answers.

use std::sync::Arc;

use codexec_types::{clean_line, cut_text};
use rmcp::model::{CallToolRequestParams, InputResponses};
use serde_json::{Map, Value};

use crate::{
    Caller,
    tool::Tool,
    upstream::{Upstream, UpstreamError},
};

const ROUNDS: usize = 10;
/// The limit on questions in one round.
const QUESTIONS: usize = 10;

/// Calls until there is a result.
pub(super) async fn call_until_complete(
    upstream: &Arc<Upstream>,
    requested_name: &str,
    tool: &Arc<Tool>,
    params: CallToolRequestParams,
    caller: &Caller,
) -> Result<Value, UpstreamError> {
    if !caller.can_answer() {
        return upstream.call(requested_name, tool, params, caller).await;
    }
    let mut next = params.clone();
    for _ in 0..=ROUNDS {
        let result = upstream.call(requested_name, tool, next, caller).await?;
        if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
            return Ok(result);
        }
        next = params.clone();
        next.request_state = text(&result, "requestState");
        next.input_responses = answer_questions(upstream, &result, caller).await?;
        if next.request_state.is_none() && next.input_responses.is_none() {
            return Err(refused_error("it asks for input without saying what".to_owned()));
        }
    }
    Err(refused_error(format!("it asked for input more than {ROUNDS} times")))
}

async fn answer_questions(
    upstream: &Upstream,
    result: &Value,
    caller: &Caller,
) -> Result<Option<InputResponses>, UpstreamError> {
    let Some(requests) = result.get("inputRequests").and_then(Value::as_object) else {
        return Ok(None);
    };
    if requests.len() > QUESTIONS {
        return Err(refused_error(format!("it asks more than {QUESTIONS} questions at once")));
    }
    let mut responses = InputResponses::new();
    for (key, request) in requests {
        let method = text(request, "method").unwrap_or_default();
        if method != "elicitation/create" {
            let method = cut_text(&clean_line(&method), 100);
            return Err(refused_error(format!(
                "it requests {method:?} from us, which is not supported"
            )));
        }
        let params = match request.get("params") {
            Some(Value::Object(params)) => params.clone(),
            Some(_) | None => Map::new(),
        };
        responses.insert(key.clone(), caller.ask(upstream.name(), params).await);
    }
    Ok(Some(responses))
}

fn refused_error(why: String) -> UpstreamError {
    UpstreamError::Refused(why)
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}
