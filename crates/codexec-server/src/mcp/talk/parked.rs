//! Calls of clients that get questions as results. The call waits until the client calls again with
//! the answer, and then continues.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codexec_gateway::Question;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use super::{Talk, instead};
use crate::Reply;
use crate::mcp::content;

/// As long as the asking server waits.
const KEPT: Duration = Duration::from_secs(600);
const PLACES: usize = 64;
/// The key of the only question in a result.
const KEY: &str = "question";

/// The calls that wait for an answer, by their `requestState`.
#[derive(Clone, Default)]
pub(in crate::mcp) struct Parked(Arc<Mutex<HashMap<String, Place>>>);

/// A call that waits for an answer.
///
/// THREAT[ASK-2]: its key is random, and is valid only for the same tool and arguments.
pub(super) struct Place {
    talk: Talk,
    question: Question,
    tool: String,
    arguments: Option<JsonObject>,
}

impl Place {
    pub(super) fn new(talk: Talk, question: Question, request: &CallToolRequestParams) -> Place {
        let tool = request.name.to_string();
        Place { talk, question, tool, arguments: request.arguments.clone() }
    }

    fn is_for(&self, request: &CallToolRequestParams) -> bool {
        self.tool == request.name && self.arguments == request.arguments
    }
}

impl Parked {
    /// Parks the call, and returns the result with the question.
    pub(super) fn keep(
        &self,
        place: Place,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let mut bits = [0; 16];
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= PLACES || getrandom::fill(&mut bits).is_err() {
            let sorry = "QUEUE_FULL: the call asks a question, and too many others wait for \
                         answers; answer some of them first";
            return CallToolResponse::Complete(content(Reply::error(sorry.to_owned())));
        }
        let key = format!("{:032x}", u128::from_ne_bytes(bits));
        let request = json!({"method": "elicitation/create", "params": place.question.params});
        places.insert(key.clone(), place);
        drop(places);
        tokio::spawn(forget(Arc::downgrade(&self.0), key.clone()));
        let result = json!({
            "resultType": "input_required",
            "inputRequests": {KEY: request},
            "requestState": key,
        });
        instead(context, result);
        CallToolResponse::Complete(CallToolResult::success(Vec::new()))
    }

    /// Takes the parked call that this request continues, and answers its question.
    pub(in crate::mcp) fn take(&self, request: &CallToolRequestParams) -> Result<Talk, ErrorData> {
        let key = request.request_state.as_deref().unwrap_or_default();
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = places.get(key).is_some_and(|place| place.is_for(request));
        let Some(place) = is_there.then(|| places.remove(key)).flatten() else {
            let message = "requestState: no call of this tool with these arguments waits for an \
                           answer; call it anew without requestState";
            return Err(ErrorData::invalid_params(message, None));
        };
        drop(places);
        let answers = request.input_responses.as_ref();
        let answer = answers.and_then(|answers| answers.get(KEY)).cloned();
        place.question.answer(answer.unwrap_or_else(cancelled));
        Ok(place.talk)
    }
}

async fn forget(places: std::sync::Weak<Mutex<HashMap<String, Place>>>, key: String) {
    tokio::time::sleep(KEPT).await;
    if let Some(places) = places.upgrade() {
        places.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}

fn cancelled() -> Value {
    json!({ "action": "cancel" })
}
