//! Tool calls straight to a process: from the caller's hand into its input, and from its output
//! into the caller's. rmcp does everything else over the same pipes; for a call, its queues and
//! tasks cost more than all the rest of us.

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

/// Where our own ids begin. rmcp counts from 0, and lists, pages and handshakes do not get there;
/// nor do we get to where some servers' numbers end.
const FIRST_ID: i64 = 1_000_000_000;

type Answer = Result<Value, ErrorData>;

pub(super) struct Lane {
    pub(super) outbox: Arc<Outbox>,
    pub(super) waiting: Arc<Waiting>,
    next_id: AtomicI64,
}

/// Who waits for which answer.
#[derive(Default)]
pub(super) struct Waiting(Mutex<HashMap<i64, oneshot::Sender<Answer>>>);

/// A call under way. Dropped before its answer has come, it is cancelled.
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

    /// Its id is also its progress token. Nothing is sent yet.
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

    /// All who wait.
    pub(super) fn ids(&self) -> Vec<i64> {
        self.lock().keys().copied().collect()
    }

    /// Does nothing when nobody waits for it.
    pub(super) fn deliver(&self, id: i64, answer: Answer) {
        if let Some(waiting) = self.lock().remove(&id) {
            // Who has left in this very moment has no use for it.
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
            // What it never heard of need not be cancelled.
            self.lane.waiting.lock().remove(&self.id);
        }
        sent
    }

    /// `None`: it will never come.
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
            // A server that cannot be told has ended, and the call with it.
            let _ = self.lane.outbox.send(&cancelled);
        }
    }
}
