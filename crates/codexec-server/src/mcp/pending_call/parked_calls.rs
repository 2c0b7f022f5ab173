//! Calls of clients that get questions as results. The call waits until the client calls again with
//! the answer, and then continues.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codexec_gateway::Question;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use super::{PendingCall, replace_result};
use crate::ToolReply;
use crate::mcp::tool_result;

/// As long as the asking server waits.
const PARKED_TIMEOUT: Duration = Duration::from_secs(600);
const MAX_PARKED: usize = 64;
/// The key of the only question in a result.
const KEY: &str = "question";

/// The calls that wait for an answer, by their `requestState`.
#[derive(Clone, Default)]
pub(in crate::mcp) struct ParkedCalls(Arc<Mutex<HashMap<String, ParkedCall>>>);

/// A call that waits for an answer.
///
/// THREAT[ASK-2]: its key is random, and is valid only for the same tool and arguments.
pub(super) struct ParkedCall {
    pending: PendingCall,
    question: Question,
    tool: String,
    arguments: Option<JsonObject>,
}

impl ParkedCall {
    pub(super) fn new(
        pending: PendingCall,
        question: Question,
        request: &CallToolRequestParams,
    ) -> ParkedCall {
        let tool = request.name.to_string();
        ParkedCall { pending, question, tool, arguments: request.arguments.clone() }
    }

    fn is_for(&self, request: &CallToolRequestParams) -> bool {
        self.tool == request.name && self.arguments == request.arguments
    }
}

impl ParkedCalls {
    /// Parks the call, and returns the result with the question.
    pub(super) fn park(
        &self,
        call: ParkedCall,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let mut bits = [0; 16];
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() >= MAX_PARKED || getrandom::fill(&mut bits).is_err() {
            let sorry = "QUEUE_FULL: the call asks a question, and too many others wait for \
                         answers; answer some of them first";
            return CallToolResponse::Complete(tool_result(ToolReply::error(sorry.to_owned())));
        }
        let key = format!("{:032x}", u128::from_ne_bytes(bits));
        let question = &call.question;
        let request = json!({"method": question.kind.method(), "params": question.params});
        calls.insert(key.clone(), call);
        drop(calls);
        tokio::spawn(drop_after_timeout(Arc::downgrade(&self.0), key.clone()));
        let result = json!({
            "resultType": "input_required",
            "inputRequests": {KEY: request},
            "requestState": key,
        });
        replace_result(context, result);
        CallToolResponse::Complete(CallToolResult::success(Vec::new()))
    }

    /// Takes the parked call that this request continues, and answers its question.
    pub(in crate::mcp) fn take(
        &self,
        request: &CallToolRequestParams,
    ) -> Result<PendingCall, ErrorData> {
        let key = request.request_state.as_deref().unwrap_or_default();
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same_call = calls.get(key).is_some_and(|call| call.is_for(request));
        let Some(call) = is_same_call.then(|| calls.remove(key)).flatten() else {
            let message = "requestState: no call of this tool with these arguments waits for an \
                           answer; call it anew without requestState";
            return Err(ErrorData::invalid_params(message, None));
        };
        drop(calls);
        let answers = request.input_responses.as_ref();
        let answer = answers.and_then(|answers| answers.get(KEY)).cloned();
        match answer {
            Some(answer) => call.question.answer(answer),
            None => call.question.fail(super::questions::unanswered()),
        }
        Ok(call.pending)
    }
}

async fn drop_after_timeout(
    calls: std::sync::Weak<Mutex<HashMap<String, ParkedCall>>>,
    key: String,
) {
    tokio::time::sleep(PARKED_TIMEOUT).await;
    if let Some(calls) = calls.upgrade() {
        calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}
