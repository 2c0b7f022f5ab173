//! Tool calls that may take long: their progress, their questions, and their cancellation.

mod elicitation;
mod parked;
mod report;

use codexec_gateway::{Caller, Question};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(super) use self::parked::Parked;
use self::parked::Place;
pub(super) use self::report::Watched;
use self::report::tell;
use super::content;
use super::raw::{instead, is_modern};
use crate::Reply;

/// A running tool call, in its own task. Dropping it cancels the call.
pub(super) struct Talk {
    pub(super) running: JoinHandle<Said>,
    pub(super) cancel: DropGuard,
    pub(super) watched: Watched,
    pub(super) questions: mpsc::Receiver<Question>,
    /// True if the client did not call the server that asks, so that questions must name the
    /// server.
    pub(super) names_servers: bool,
}

/// The outcome of a call.
pub(super) enum Said {
    Ours(Box<CallToolResult>),
    /// The result of an upstream, unchanged.
    Theirs(Value),
    Refused(ErrorData),
}

/// Creates the caller for the gateway. Questions of upstreams arrive at the receiver.
pub(super) fn caller(context: &RequestContext<RoleServer>) -> (Caller, mpsc::Receiver<Question>) {
    let (sender, questions) = mpsc::channel(1);
    let caller = match elicitation::can_show(context) {
        Some(can_show) => Caller::default().asked_by(sender, can_show),
        None => Caller::default(),
    };
    (caller, questions)
}

impl Talk {
    pub(super) fn new(
        running: JoinHandle<Said>,
        cancel: CancellationToken,
        watched: Watched,
        questions: mpsc::Receiver<Question>,
    ) -> Talk {
        let cancel = cancel.drop_guard();
        Talk { running, cancel, watched, questions, names_servers: false }
    }

    /// Runs until there is a result, or a question to a client that gets questions as results.
    pub(super) async fn go_on(
        mut self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        parked: &Parked,
    ) -> Result<CallToolResponse, ErrorData> {
        // Most clients do not request progress, so none is computed for them.
        let is_watched = context.meta.get_progress_token().is_some();
        let said = loop {
            let question = tokio::select! {
                said = &mut self.running => break said,
                Some(question) = self.questions.recv() => question,
                () = context.ct.cancelled() => {
                    drop(self.cancel);
                    // An execution that was begun is also finished.
                    break self.running.await;
                }
                progress = self.watched.next(), if is_watched => {
                    tell(context, progress).await;
                    continue;
                }
            };
            let question = self.named(question);
            if is_modern(context) {
                let place = Place::new(self, question, request);
                return Ok(parked.keep(place, context));
            }
            // In its own task: it also tells the client when the question is abandoned.
            tokio::spawn(elicitation::ask(context.peer.clone(), question));
        };
        while let Some(progress) = self.watched.rest() {
            tell(context, progress).await;
        }
        match said {
            Ok(Said::Ours(result)) => Ok(CallToolResponse::Complete(*result)),
            Ok(Said::Theirs(result)) => {
                instead(context, result);
                Ok(CallToolResponse::Complete(CallToolResult::success(Vec::new())))
            }
            Ok(Said::Refused(error)) => Err(error),
            Err(_) => {
                let sorry = "INTERNAL_ERROR: this call failed with an internal error of codexec";
                Ok(CallToolResponse::Complete(content(Reply::error(sorry.to_owned()))))
            }
        }
    }

    fn named(&self, mut question: Question) -> Question {
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
