//! Tool calls that may take long: their progress, their questions, and their cancellation.

mod parked_calls;
mod progress;
mod questions;

use codexec_gateway::{Caller, Question, QuestionSupport};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::parked_calls::ParkedCall;
pub(super) use self::parked_calls::ParkedCalls;
pub(super) use self::progress::ProgressSource;
use self::progress::notify_progress;
pub(super) use self::questions::read_support;
use super::raw_result::{is_modern, replace_result};
use super::tool_result;
use crate::ToolReply;

/// A running tool call, in its own task. Dropping it cancels the call.
pub struct PendingCall {
    pub(super) running: JoinHandle<CallOutcome>,
    pub(super) cancel: DropGuard,
    pub(super) progress: ProgressSource,
    pub(super) questions: mpsc::Receiver<Question>,
    /// True if the client did not call the server that asks, so that questions must name the
    /// server.
    pub(super) names_servers: bool,
}

/// The outcome of a call.
pub enum CallOutcome {
    Own(Box<CallToolResult>),
    /// The result of an upstream, unchanged.
    Upstream(Value),
    Refused(ErrorData),
}

impl CallOutcome {
    pub fn own(result: CallToolResult) -> CallOutcome {
        CallOutcome::Own(Box::new(result))
    }
}

/// Creates the caller for the gateway. Elicitations of upstreams arrive at the receiver.
pub(super) fn create_caller(
    context: &RequestContext<RoleServer>,
) -> (Caller, mpsc::Receiver<Question>) {
    let support = QuestionSupport { sampling: false, roots: false, ..read_support(context) };
    create_caller_with(support)
}

/// Creates a caller that gets the questions it supports.
pub(super) fn create_caller_with(support: QuestionSupport) -> (Caller, mpsc::Receiver<Question>) {
    let (sender, questions) = mpsc::channel(1);
    let caller = match support == QuestionSupport::default() {
        true => Caller::default(),
        false => Caller::default().with_questions(sender, support),
    };
    (caller, questions)
}

impl PendingCall {
    pub(super) fn new(
        running: JoinHandle<CallOutcome>,
        cancel: CancellationToken,
        progress: ProgressSource,
        questions: mpsc::Receiver<Question>,
    ) -> PendingCall {
        let cancel = cancel.drop_guard();
        PendingCall { running, cancel, progress, questions, names_servers: false }
    }

    /// Runs until there is a result, or a question to a client that gets questions as results.
    pub(super) async fn drive(
        mut self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        parked: &ParkedCalls,
    ) -> Result<CallToolResponse, ErrorData> {
        // Most clients do not request progress, so none is computed for them.
        let is_watched = context.meta.get_progress_token().is_some();
        let outcome = loop {
            let question = tokio::select! {
                outcome = &mut self.running => break outcome,
                Some(question) = self.questions.recv() => question,
                () = context.ct.cancelled() => {
                    drop(self.cancel);
                    // An execution that was begun is also finished.
                    break self.running.await;
                }
                progress = self.progress.next(), if is_watched => {
                    notify_progress(context, progress).await;
                    continue;
                }
            };
            let question = self.with_server_name(question);
            if is_modern(context) {
                let call = ParkedCall::new(self, question, request);
                return Ok(parked.park(call, context));
            }
            // In its own task: it also tells the client when the question is abandoned.
            let (peer, request) = (context.peer.clone(), context.id.clone());
            tokio::spawn(questions::ask(peer, request, question));
        };
        while let Some(progress) = self.progress.take_last() {
            notify_progress(context, progress).await;
        }
        match outcome {
            Ok(CallOutcome::Own(result)) => Ok(CallToolResponse::Complete(*result)),
            Ok(CallOutcome::Upstream(result)) => {
                replace_result(context, result);
                Ok(CallToolResponse::Complete(CallToolResult::success(Vec::new())))
            }
            Ok(CallOutcome::Refused(error)) => Err(error),
            Err(_) => {
                let sorry = "INTERNAL_ERROR: this call failed with an internal error of codexec";
                Ok(CallToolResponse::Complete(tool_result(ToolReply::error(sorry.to_owned()))))
            }
        }
    }

    fn with_server_name(&self, mut question: Question) -> Question {
        let server = question.server.to_string();
        if let Some(Value::String(message)) = question.params.get_mut("message")
            && self.names_servers
        {
            *message = format!("{server} asks: {message}");
        }
        let meta = question.params.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert("codexec/server".to_owned(), server.into());
        }
        question
    }
}
