//! The caller of a tool: answers a server's questions and receives progress.

use std::{fmt, sync::Arc, time::Duration};

use codexec_types::{ServerName, clean_text, cut_text};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot, watch};

/// The time a person has to answer one question.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
const MESSAGE_BYTES: usize = 16 << 10;
const PARAMS_BYTES: usize = 256 << 10;

/// The party behind a call. The default declines every question and drops progress.
#[derive(Clone, Default)]
pub struct Caller {
    questions: Option<QuestionChannel>,
    /// The number of questions waiting for an answer.
    open: Arc<watch::Sender<u32>>,
    follow_call: Option<FollowCall>,
}

/// Makes a callback for each call that begins.
pub type FollowCall = Arc<dyn Fn() -> OnProgress + Send + Sync>;

/// A callback for a call's progress, in order of arrival. Must not block.
pub type OnProgress = Arc<dyn Fn(CallProgress) + Send + Sync>;

/// Progress that a server reports for a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallProgress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// The kinds of elicitation a caller can show to a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElicitationSupport {
    pub forms: bool,
    pub urls: bool,
}

#[derive(Clone)]
struct QuestionChannel {
    sender: mpsc::Sender<Question>,
    can_show: ElicitationSupport,
}

/// A server's `elicitation/create`. Dropping it answers with "cancel".
#[derive(Debug)]
pub struct Question {
    pub server: ServerName,
    /// The server's parameters, with hidden characters stripped from the texts.
    pub params: Map<String, Value>,
    reply: oneshot::Sender<Value>,
}

impl Question {
    /// Answers with an elicitation result: `{"action": "accept", "content": {..}}`.
    pub fn answer(self, result: Value) {
        // Fails only if the server no longer waits.
        let _ = self.reply.send(result);
    }

    /// Returns when nobody waits for the answer any more.
    pub async fn wait_abandoned(&mut self) {
        self.reply.closed().await;
    }
}

impl Caller {
    /// Sends questions to this channel.
    #[must_use]
    pub fn with_questions(
        mut self,
        questions: mpsc::Sender<Question>,
        can_show: ElicitationSupport,
    ) -> Caller {
        self.questions = Some(QuestionChannel { sender: questions, can_show });
        self
    }

    /// Reports the progress of every call, whichever it is.
    #[must_use]
    pub fn on_progress(self, on_progress: OnProgress) -> Caller {
        self.follow_calls(Arc::new(move || Arc::clone(&on_progress)))
    }

    /// Reports the progress of each call to a callback of its own.
    #[must_use]
    pub fn follow_calls(mut self, follow_call: FollowCall) -> Caller {
        self.follow_call = Some(follow_call);
        self
    }

    /// Subscribes to the number of questions that wait for an answer.
    pub fn open_questions(&self) -> watch::Receiver<u32> {
        self.open.subscribe()
    }

    /// Returns the callback for a call that begins.
    pub(crate) fn follow_call(&self) -> Option<OnProgress> {
        self.follow_call.as_ref().map(|follow_call| follow_call())
    }

    /// Returns true if questions can be answered.
    pub(crate) fn can_answer(&self) -> bool {
        self.questions.is_some()
    }

    /// Asks, and waits for the answer. Every failure becomes a decline or cancel result.
    pub(crate) async fn ask(&self, server: &ServerName, params: Map<String, Value>) -> Value {
        let Some(channel) = &self.questions else { return decline_result() };
        let Some(params) = sanitize_question(params, channel.can_show) else {
            return decline_result();
        };
        let (reply, answer) = oneshot::channel();
        let _open = OpenQuestion::new(&self.open);
        let question = Question { server: server.clone(), params, reply };
        if channel.sender.send(question).await.is_err() {
            return decline_result();
        }
        match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => cancel_result(),
        }
    }
}

/// A question waiting for its answer, counted until dropped.
struct OpenQuestion<'a>(&'a watch::Sender<u32>);

impl OpenQuestion<'_> {
    fn new(open: &watch::Sender<u32>) -> OpenQuestion<'_> {
        open.send_modify(|open| *open += 1);
        OpenQuestion(open)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("can_answer", &self.can_answer()).finish_non_exhaustive()
    }
}

/// THREAT[ASK-1]: a person sees only visible text of bounded length, and only web addresses.
/// Returns `None` if the question must not be shown.
fn sanitize_question(
    mut params: Map<String, Value>,
    can_show: ElicitationSupport,
) -> Option<Map<String, Value>> {
    let is_url = params.get("mode").and_then(Value::as_str) == Some("url");
    let is_showable = match is_url {
        true => can_show.urls && params.get("url").and_then(Value::as_str).is_some_and(is_web),
        false => can_show.forms,
    };
    if !is_showable || Value::Object(params.clone()).to_string().len() > PARAMS_BYTES {
        return None;
    }
    if let Some(Value::String(message)) = params.get_mut("message") {
        *message = cut_text(&clean_text(message), MESSAGE_BYTES);
    }
    if let Some(schema) = params.get_mut("requestedSchema") {
        clean_texts(schema);
    }
    Some(params)
}

fn is_web(address: &str) -> bool {
    url::Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "https" | "http"))
}

/// Cleans titles and descriptions. The parts that an answer is checked against stay as they are.
fn clean_texts(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "title" || key == "description" => {
                        *text = cut_text(&clean_text(text), MESSAGE_BYTES);
                    }
                    Value::Array(texts) if key == "enumNames" => {
                        for text in texts {
                            if let Value::String(text) = text {
                                *text = clean_text(text);
                            }
                        }
                    }
                    other => clean_texts(other),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(clean_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(crate) fn decline_result() -> Value {
    json!({ "action": "decline" })
}

pub(crate) fn cancel_result() -> Value {
    json!({ "action": "cancel" })
}

#[cfg(test)]
mod tests;
