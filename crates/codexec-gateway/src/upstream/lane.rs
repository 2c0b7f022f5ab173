//! Tool calls that bypass rmcp: written straight to the server's stdin, and answered straight from
//! its stdout. rmcp does everything else over the same pipes, but its queues and tasks cost more
//! per call than all other work of ours.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use rmcp::model::{ErrorData, JsonObject};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::outbox::{Outbox, SendError};

/// The first of our request ids. rmcp counts from 0 and never gets here with its lists and
/// handshakes; and the ids stay below the number limit of some servers.
const FIRST_ID: i64 = 1_000_000_000;

type Answer = Result<Value, ErrorData>;

pub(super) struct Lane {
    pub(super) outbox: Arc<Outbox>,
    pub(super) waiting: Arc<Waiting>,
    next_id: AtomicI64,
}

/// Senders for outstanding answers, by request id.
#[derive(Default)]
pub(super) struct Waiting(Mutex<HashMap<i64, oneshot::Sender<Answer>>>);

/// A call in progress. Dropping it before the answer cancels it.
pub(super) struct Call<'a> {
    lane: &'a Lane,
    pub(super) id: i64,
    answer: oneshot::Receiver<Answer>,
}

#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: i64,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
struct Params<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a JsonObject>,
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    progress_token: i64,
}

impl Lane {
    pub(super) fn new(outbox: Arc<Outbox>) -> Lane {
        Lane { outbox, waiting: Arc::default(), next_id: AtomicI64::new(FIRST_ID) }
    }

    /// Begins a call without sending anything. Its id is also its progress token.
    pub(super) fn call(&self) -> Call<'_> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(id, sender);
        Call { lane: self, id, answer }
    }
}

impl Waiting {
    pub(super) fn has(&self, id: i64) -> bool {
        self.lock().contains_key(&id)
    }

    /// Returns the ids of all waiting calls.
    pub(super) fn ids(&self) -> Vec<i64> {
        self.lock().keys().copied().collect()
    }

    /// Delivers an answer, if anybody waits for it.
    pub(super) fn deliver(&self, id: i64, answer: Answer) {
        if let Some(waiting) = self.lock().remove(&id) {
            // Fails if the caller has just left.
            let _ = waiting.send(answer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Answer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call<'_> {
    pub(super) fn send(&self, tool: &str, arguments: Option<&JsonObject>) -> Result<(), SendError> {
        let meta = Meta { progress_token: self.id };
        let params = Params { name: tool, arguments, meta };
        let request = Request { jsonrpc: "2.0", id: self.id, method: "tools/call", params };
        let sent = self.lane.outbox.send(&request);
        if sent.is_err() {
            // A request that was never sent need not be cancelled.
            self.lane.waiting.lock().remove(&self.id);
        }
        sent
    }

    /// Returns `None` if the answer will never arrive.
    pub(super) async fn answer(&mut self) -> Option<Answer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.lane.waiting.lock().remove(&self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": "the caller is gone"});
            let method = "notifications/cancelled";
            let cancelled = json!({"jsonrpc": "2.0", "method": method, "params": params});
            // Sending fails only if the server has ended, and the call with it.
            let _ = self.lane.outbox.send(&cancelled);
        }
    }
}
