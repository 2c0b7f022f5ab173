//! Tool calls of servers with the older protocol bypass rmcp: they are written straight to the
//! server's stdin, and answered straight from its stdout. rmcp does everything else over the same
//! pipes, but its queues and tasks cost more per call than all other work of ours.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use rmcp::model::{CallToolRequestParams, ErrorData, JsonObject};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::call::TRACE_PARENT;
use super::stdin_writer::{SendError, StdinWriter};

/// The first of our request ids. rmcp counts from 0 and never gets here with its lists and
/// handshakes; and the ids stay below the number limit of some servers.
const FIRST_ID: i64 = 1_000_000_000;

type CallAnswer = Result<Value, ErrorData>;

pub(super) struct CallPipe {
    pub(super) stdin: Arc<StdinWriter>,
    pub(super) pending: Arc<PendingAnswers>,
    next_id: AtomicI64,
}

/// Senders for outstanding answers, by request id.
#[derive(Default)]
pub(super) struct PendingAnswers(Mutex<HashMap<i64, oneshot::Sender<CallAnswer>>>);

/// A call in progress. Dropping it before the answer cancels it.
pub(super) struct PipedCall<'a> {
    pipe: &'a CallPipe,
    pub(super) id: i64,
    answer: oneshot::Receiver<CallAnswer>,
}

#[derive(Serialize)]
struct ToolCallRequest<'a> {
    jsonrpc: &'static str,
    id: i64,
    method: &'static str,
    params: ToolCallParams<'a>,
}

#[derive(Serialize)]
struct ToolCallParams<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a JsonObject>,
    #[serde(rename = "_meta")]
    meta: RequestMeta<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestMeta<'a> {
    progress_token: i64,
    /// All lower case in the standard.
    #[serde(rename = "traceparent", skip_serializing_if = "Option::is_none")]
    trace_parent: Option<&'a str>,
}

impl CallPipe {
    pub(super) fn new(stdin: Arc<StdinWriter>) -> CallPipe {
        CallPipe { stdin, pending: Arc::default(), next_id: AtomicI64::new(FIRST_ID) }
    }

    /// Begins a call without sending anything. Its id is also its progress token.
    pub(super) fn begin_call(&self) -> PipedCall<'_> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.pending.lock().insert(id, sender);
        PipedCall { pipe: self, id, answer }
    }
}

impl PendingAnswers {
    pub(super) fn has(&self, id: i64) -> bool {
        self.lock().contains_key(&id)
    }

    /// Returns the ids of all waiting calls.
    pub(super) fn ids(&self) -> Vec<i64> {
        self.lock().keys().copied().collect()
    }

    /// Delivers an answer, if anybody waits for it.
    pub(super) fn deliver(&self, id: i64, answer: CallAnswer) {
        if let Some(pending) = self.lock().remove(&id) {
            // Fails if the caller has just left.
            let _ = pending.send(answer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<CallAnswer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PipedCall<'_> {
    pub(super) fn send(&self, params: &CallToolRequestParams) -> Result<(), SendError> {
        let trace_parent = params.meta.as_ref().and_then(|meta| meta.get(TRACE_PARENT)?.as_str());
        let meta = RequestMeta { progress_token: self.id, trace_parent };
        let arguments = params.arguments.as_ref();
        let params = ToolCallParams { name: &params.name, arguments, meta };
        let request = ToolCallRequest { jsonrpc: "2.0", id: self.id, method: "tools/call", params };
        let sent = self.pipe.stdin.send(&request);
        if sent.is_err() {
            // A request that was never sent need not be cancelled.
            self.pipe.pending.lock().remove(&self.id);
        }
        sent
    }

    /// Returns `None` if the answer will never arrive.
    pub(super) async fn answer(&mut self) -> Option<CallAnswer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for PipedCall<'_> {
    fn drop(&mut self) {
        if self.pipe.pending.lock().remove(&self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": "the caller is gone"});
            let method = "notifications/cancelled";
            let cancelled = json!({"jsonrpc": "2.0", "method": method, "params": params});
            // Sending fails only if the server has ended, and the call with it.
            let _ = self.pipe.stdin.send(&cancelled);
        }
    }
}
