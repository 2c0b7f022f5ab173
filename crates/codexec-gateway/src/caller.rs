//! The caller of a tool: answers a server's questions and receives progress.

use std::{fmt, sync::Arc, time::Duration};

use codexec_telemetry::TraceContext;
use codexec_types::{ServerName, clean_text, cut_text};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use crate::rpc_error::RpcError;

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
    trace: Option<TraceContext>,
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

/// The questions that a caller can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuestionSupport {
    pub elicitation: ElicitationSupport,
    pub sampling: bool,
    pub roots: bool,
}

/// The kinds of elicitation that a caller can show to a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElicitationSupport {
    pub forms: bool,
    pub urls: bool,
}

/// The kinds of requests that a server may send to the client of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    Elicitation,
    Sampling,
    Roots,
}

impl QuestionKind {
    pub fn method(self) -> &'static str {
        match self {
            QuestionKind::Elicitation => "elicitation/create",
            QuestionKind::Sampling => "sampling/createMessage",
            QuestionKind::Roots => "roots/list",
        }
    }

    /// Returns the name of the capability that a client declares for it.
    pub fn capability(self) -> &'static str {
        match self {
            QuestionKind::Elicitation => "elicitation",
            QuestionKind::Sampling => "sampling",
            QuestionKind::Roots => "roots",
        }
    }

    pub(crate) fn from_method(method: &str) -> Option<QuestionKind> {
        let all = [QuestionKind::Elicitation, QuestionKind::Sampling, QuestionKind::Roots];
        all.into_iter().find(|kind| kind.method() == method)
    }
}

#[derive(Clone)]
struct QuestionChannel {
    sender: mpsc::Sender<Question>,
    support: QuestionSupport,
}

/// A request of a server to the client of a call. Dropping it answers with "cancel".
#[derive(Debug)]
pub struct Question {
    pub server: ServerName,
    pub kind: QuestionKind,
    /// The server's parameters. In an elicitation, hidden characters are stripped from the texts.
    pub params: Map<String, Value>,
    reply: oneshot::Sender<Result<Value, RpcError>>,
}

impl Question {
    /// Answers with a result: for an elicitation, `{"action": "accept", "content": {..}}`.
    pub fn answer(self, result: Value) {
        // Fails only if the server no longer waits.
        let _ = self.reply.send(Ok(result));
    }

    /// Answers with the client's error.
    pub fn fail(self, error: RpcError) {
        let _ = self.reply.send(Err(error));
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
        support: QuestionSupport,
    ) -> Caller {
        self.questions = Some(QuestionChannel { sender: questions, support });
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

    /// Sets the span that calls belong to.
    #[must_use]
    pub fn in_trace(mut self, trace: Option<TraceContext>) -> Caller {
        self.trace = trace;
        self
    }

    pub(crate) fn trace(&self) -> Option<TraceContext> {
        self.trace
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

    /// Asks, and waits for the answer. An elicitation that fails is declined or cancelled, which
    /// every server understands.
    pub(crate) async fn ask(
        &self,
        server: &ServerName,
        kind: QuestionKind,
        params: Map<String, Value>,
    ) -> Result<Value, RpcError> {
        let Some(channel) = &self.questions else { return decline(kind) };
        let Some(params) = channel.support.prepare(kind, params) else { return decline(kind) };
        let (reply, answer) = oneshot::channel();
        let _open = OpenQuestion::new(&self.open);
        let question = Question { server: server.clone(), kind, params, reply };
        if channel.sender.send(question).await.is_err() {
            return decline(kind);
        }
        match (tokio::time::timeout(ANSWER_TIMEOUT, answer).await, kind) {
            (Ok(Ok(Ok(result))), _) => Ok(result),
            (Ok(Ok(Err(_))), QuestionKind::Elicitation) => Ok(cancel_result()),
            (Ok(Ok(Err(error))), QuestionKind::Sampling | QuestionKind::Roots) => Err(error),
            (Ok(Err(_)) | Err(_), _) => cancel(kind),
        }
    }
}

impl QuestionSupport {
    /// Returns the parameters as the client may get them, or `None` if it cannot answer.
    pub(crate) fn prepare(
        self,
        kind: QuestionKind,
        params: Map<String, Value>,
    ) -> Option<Map<String, Value>> {
        match kind {
            QuestionKind::Elicitation => sanitize_question(params, self.elicitation),
            QuestionKind::Sampling => self.sampling.then_some(params),
            QuestionKind::Roots => self.roots.then_some(params),
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

/// Answers a question that nobody can be asked.
pub(crate) fn decline(kind: QuestionKind) -> Result<Value, RpcError> {
    match kind {
        QuestionKind::Elicitation => Ok(json!({ "action": "decline" })),
        QuestionKind::Sampling | QuestionKind::Roots => Err(RpcError::missing_capability(kind)),
    }
}

/// Answers a question that is no longer of interest.
pub(crate) fn cancel(kind: QuestionKind) -> Result<Value, RpcError> {
    match kind {
        QuestionKind::Elicitation => Ok(cancel_result()),
        QuestionKind::Sampling | QuestionKind::Roots => {
            Err(RpcError::new(RpcError::INTERNAL, "the client did not answer"))
        }
    }
}

fn cancel_result() -> Value {
    json!({ "action": "cancel" })
}

#[cfg(test)]
mod tests;
