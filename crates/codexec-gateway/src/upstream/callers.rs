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
    Caller,
    caller::{cancelled, declined},
};

/// The limit on questions during one call.
pub(super) const QUESTIONS: u32 = 10;

/// The calls of one server whose callers can answer questions, oldest first.
#[derive(Debug, Default)]
pub(super) struct Callers {
    calls: Mutex<BTreeMap<u64, Arc<Call>>>,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct Call {
    server: ServerName,
    caller: Caller,
    asked: AtomicU32,
    still: Mutex<Still>,
    /// Cancelled when nobody waits for the answer any more.
    is_over: CancellationToken,
}

/// The time spent on questions, during which the call's timeout is paused.
#[derive(Debug, Default)]
struct Still {
    before: Duration,
    /// The number of open questions, and since when there are any.
    open: u32,
    since: Option<Instant>,
}

/// Registers a call until dropped.
pub(super) struct Waiting<'a> {
    callers: &'a Callers,
    id: u64,
    call: Arc<Call>,
}

impl Callers {
    pub(super) fn enter(&self, server: &ServerName, caller: &Caller) -> Waiting<'_> {
        let (asked, still) = (AtomicU32::new(0), Mutex::default());
        let is_over = CancellationToken::new();
        let (server, caller) = (server.clone(), caller.clone());
        let call = Arc::new(Call { server, caller, asked, still, is_over });
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let id = calls.last_key_value().map_or(0, |(last, _)| last + 1);
        calls.insert(id, call.clone());
        Waiting { callers: self, id, call }
    }

    /// Answers a question of the server. The request does not say which call it belongs to, so the
    /// oldest call's caller is asked; without calls it is declined.
    pub(super) async fn ask(&self, params: Map<String, Value>) -> Value {
        match self.oldest() {
            Some(call) => call.ask(params).await,
            None => declined(),
        }
    }

    fn oldest(&self) -> Option<Arc<Call>> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.first_key_value().map(|(_, call)| call.clone())
    }
}

impl Call {
    async fn ask(&self, params: Map<String, Value>) -> Value {
        if self.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS {
            return cancelled();
        }
        let _open = Open::new(&self.still);
        let answer = self.is_over.run_until_cancelled(self.caller.ask(&self.server, params)).await;
        answer.unwrap_or_else(cancelled)
    }
}

impl Waiting<'_> {
    /// Returns how long the call's timeout has been paused.
    pub(super) fn stood(&self) -> Duration {
        let still = self.call.still.lock().unwrap_or_else(PoisonError::into_inner);
        still.before + still.since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut calls = self.callers.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.remove(&self.id);
        self.call.is_over.cancel();
    }
}

/// A question being answered, which pauses the timeout until dropped.
struct Open<'a>(&'a Mutex<Still>);

impl Open<'_> {
    fn new(still: &Mutex<Still>) -> Open<'_> {
        let mut now = still.lock().unwrap_or_else(PoisonError::into_inner);
        now.open += 1;
        now.since.get_or_insert_with(Instant::now);
        Open(still)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut still = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        still.open = still.open.saturating_sub(1);
        if still.open == 0 {
            let stood = still.since.take().map(|since| since.elapsed());
            still.before += stood.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests;
