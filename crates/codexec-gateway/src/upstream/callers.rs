//! Who waits for a server's answer, for when the server has a question first.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{
    Caller,
    caller::{Open, cancelled, declined},
};

/// Questions that one call may ask.
pub(crate) const QUESTIONS: u32 = 10;

/// The calls of one server that somebody can be asked about, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    calls: Mutex<BTreeMap<u64, Arc<Call>>>,
}

/// One call that waits for its answer.
#[derive(Debug)]
struct Call {
    caller: Caller,
    asked: AtomicU32,
    /// Questions that are being answered: the call's clock stands still.
    open: watch::Sender<u32>,
}

/// A place among the callers; left by dropping it.
pub(crate) struct Waiting<'a> {
    callers: &'a Callers,
    id: u64,
    call: Arc<Call>,
}

impl Callers {
    pub(crate) fn enter(&self, caller: &Caller) -> Waiting<'_> {
        let call =
            Call { caller: caller.clone(), asked: AtomicU32::new(0), open: watch::Sender::new(0) };
        let call = Arc::new(call);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let id = calls.last_key_value().map_or(0, |(last, _)| last + 1);
        calls.insert(id, call.clone());
        Waiting { callers: self, id, call }
    }

    /// A request that the server sends by itself does not say which call it belongs to: the
    /// oldest is asked, and without any it is declined.
    pub(super) async fn ask(
        &self,
        server: &codexec_types::ServerName,
        params: Map<String, Value>,
    ) -> Value {
        let oldest = self.oldest();
        match oldest {
            Some(call) => call.ask(server, params).await,
            None => declined(),
        }
    }
}

impl Callers {
    fn oldest(&self) -> Option<Arc<Call>> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.first_key_value().map(|(_, call)| call.clone())
    }
}

impl Call {
    async fn ask(&self, server: &codexec_types::ServerName, params: Map<String, Value>) -> Value {
        if self.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS {
            return cancelled();
        }
        let _open = Open::new(&self.open);
        self.caller.ask(server, params).await
    }
}

impl Waiting<'_> {
    /// A question of the very call.
    pub(crate) async fn ask(
        &self,
        server: &codexec_types::ServerName,
        params: Map<String, Value>,
    ) -> Value {
        self.call.ask(server, params).await
    }

    /// Ends after `limit`, not counting the time in which somebody is asked.
    pub(crate) async fn time_is_up(&self, limit: Duration) {
        let mut open = self.call.open.subscribe();
        let mut left = limit;
        loop {
            let begun = Instant::now();
            tokio::select! {
                () = sleep(left) => return,
                _ = open.wait_for(|open| *open > 0) => {}
            }
            left = left.saturating_sub(begun.elapsed());
            // The sender is ours: it is there.
            let _ = open.wait_for(|open| *open == 0).await;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut calls = self.callers.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.remove(&self.id);
    }
}
