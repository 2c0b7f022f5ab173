//! Multi-round requests: a server with the newer protocol may return questions instead of a result,
//! and is called again with the answers.

use codexec_types::{clean_line, cut_text};
use rmcp::model::InputResponses;
use serde_json::{Map, Value};

use crate::{
    Caller, QuestionKind,
    upstream::{Upstream, UpstreamError},
};

const ROUNDS: usize = 10;
/// The limit on questions in one round.
const QUESTIONS: usize = 10;

/// The additions of a round to the first request: the answers, and the server's state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundInput {
    pub responses: Option<InputResponses>,
    pub state: Option<String>,
}

/// The rounds of one request.
pub(super) struct Rounds {
    /// The input for the next round.
    pub(super) input: RoundInput,
    count: usize,
}

impl Rounds {
    pub(super) fn new(input: RoundInput) -> Rounds {
        Rounds { input, count: 0 }
    }

    /// Returns the result if it is the last one. Otherwise asks the caller, and `input` is for the
    /// next round. A caller that cannot answer gets the questions as the result.
    pub(super) async fn finish(
        &mut self,
        upstream: &Upstream,
        caller: &Caller,
        result: Value,
    ) -> Result<Option<Value>, UpstreamError> {
        if !is_input_required(&result) || !caller.can_answer() {
            return Ok(Some(result));
        }
        self.count += 1;
        if self.count > ROUNDS {
            return Err(refused_error(format!("it asked for input more than {ROUNDS} times")));
        }
        self.input = RoundInput {
            state: text(&result, "requestState"),
            responses: answer_questions(upstream, &result, caller).await?,
        };
        match self.input == RoundInput::default() {
            true => Err(refused_error("it asks for input without saying what".to_owned())),
            false => Ok(None),
        }
    }
}

fn is_input_required(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}

async fn answer_questions(
    upstream: &Upstream,
    result: &Value,
    caller: &Caller,
) -> Result<Option<InputResponses>, UpstreamError> {
    let mut responses = InputResponses::new();
    let Some(questions) = read_questions(result)? else { return Ok(None) };
    for (key, kind, params) in questions {
        let answer = caller.ask(upstream.name(), kind, params).await;
        responses.insert(key, answer.map_err(UpstreamError::Rejected)?);
    }
    Ok(Some(responses))
}

type KeyedQuestion = (String, QuestionKind, Map<String, Value>);

/// Returns the questions in a result; `None` if it has none.
pub(super) fn read_questions(result: &Value) -> Result<Option<Vec<KeyedQuestion>>, UpstreamError> {
    let Some(requests) = result.get("inputRequests").and_then(Value::as_object) else {
        return Ok(None);
    };
    if requests.len() > QUESTIONS {
        return Err(refused_error(format!("it asks more than {QUESTIONS} questions at once")));
    }
    let read = |(key, request): (&String, &Value)| {
        let method = text(request, "method").unwrap_or_default();
        let Some(kind) = QuestionKind::from_method(&method) else {
            let method = cut_text(&clean_line(&method), 100);
            let why = format!("it requests {method:?} from us, which is not supported");
            return Err(refused_error(why));
        };
        let params = request.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok((key.clone(), kind, params))
    };
    requests.iter().map(read).collect::<Result<_, _>>().map(Some)
}

fn refused_error(why: String) -> UpstreamError {
    UpstreamError::Refused(why)
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}
