//! The callers that wait for a server's answer, and can answer its questions meanwhile.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use codexec_types::ServerName;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Caller, QuestionKind, RpcError,
    caller::{cancel, decline},
};

/// The limit on questions during one call.
pub(super) const QUESTIONS: u32 = 10;

/// The calls of one server whose callers can answer questions, oldest first.
#[derive(Debug, Default)]
pub(super) struct Callers {
    calls: Mutex<BTreeMap<u64, Arc<RegisteredCall>>>,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct RegisteredCall {
    server: ServerName,
    caller: Caller,
    questions_asked: AtomicU32,
    paused: Mutex<PausedTime>,
    /// Cancelled when nobody waits for the answer any more.
    is_over: CancellationToken,
}

/// The time spent on questions, during which the call's timeout is paused.
#[derive(Debug, Default)]
struct PausedTime {
    before: Duration,
    /// The number of open questions, and since when there are any.
    open: u32,
    since: Option<Instant>,
}

/// The registration of a call, removed on drop.
pub(super) struct CallerGuard<'a> {
    callers: &'a Callers,
    id: u64,
    call: Arc<RegisteredCall>,
}

impl Callers {
    pub(super) fn register(&self, server: &ServerName, caller: &Caller) -> CallerGuard<'_> {
        let (questions_asked, paused) = (AtomicU32::new(0), Mutex::default());
        let is_over = CancellationToken::new();
        let (server, caller) = (server.clone(), caller.clone());
        let call = Arc::new(RegisteredCall { server, caller, questions_asked, paused, is_over });
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let id = calls.last_key_value().map_or(0, |(last, _)| last + 1);
        calls.insert(id, call.clone());
        CallerGuard { callers: self, id, call }
    }

    /// Answers a question of the server. The request does not say which call it belongs to, so the
    /// oldest call's caller is asked; without calls it is declined.
    pub(super) async fn ask(
        &self,
        kind: QuestionKind,
        params: Map<String, Value>,
    ) -> Result<Value, RpcError> {
        match self.oldest_call() {
            Some(call) => call.ask(kind, params).await,
            None => decline(kind),
        }
    }

    fn oldest_call(&self) -> Option<Arc<RegisteredCall>> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.first_key_value().map(|(_, call)| call.clone())
    }
}

impl RegisteredCall {
    async fn ask(&self, kind: QuestionKind, params: Map<String, Value>) -> Result<Value, RpcError> {
        if self.questions_asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS {
            return cancel(kind);
        }
        let _open = QuestionPause::new(&self.paused);
        let asking = self.caller.ask(&self.server, kind, params);
        self.is_over.run_until_cancelled(asking).await.unwrap_or_else(|| cancel(kind))
    }
}

impl CallerGuard<'_> {
    /// Returns how long the call's timeout has been paused.
    pub(super) fn paused_for(&self) -> Duration {
        let paused = self.call.paused.lock().unwrap_or_else(PoisonError::into_inner);
        paused.before + paused.since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

impl Drop for CallerGuard<'_> {
    fn drop(&mut self) {
        let mut calls = self.callers.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.remove(&self.id);
        self.call.is_over.cancel();
    }
}

/// A question being answered, which pauses the timeout until dropped.
struct QuestionPause<'a>(&'a Mutex<PausedTime>);

impl QuestionPause<'_> {
    fn new(paused: &Mutex<PausedTime>) -> QuestionPause<'_> {
        let mut now = paused.lock().unwrap_or_else(PoisonError::into_inner);
        now.open += 1;
        now.since.get_or_insert_with(Instant::now);
        QuestionPause(paused)
    }
}

impl Drop for QuestionPause<'_> {
    fn drop(&mut self) {
        let mut paused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paused.open = paused.open.saturating_sub(1);
        if paused.open == 0 {
            let elapsed = paused.since.take().map(|since| since.elapsed());
            paused.before += elapsed.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests;
