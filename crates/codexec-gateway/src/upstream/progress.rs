//! Progress of running calls. It restarts the call's timeout and reaches the caller; a flood of it
//! costs neither wakeups nor memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use codexec_types::{clean_line, cut_text};
use serde_json::Value;
use tokio::time::Instant;

pub(super) use crate::{CallProgress, OnProgress};

/// A token bucket: its size, and the time to refill one token.
const BURST: u32 = 100;
const REFILL: Duration = Duration::from_millis(50);
const MESSAGE_BYTES: usize = 1 << 10;

/// The listeners of running calls, by progress token.
#[derive(Default)]
pub(crate) struct ProgressListeners(Mutex<HashMap<i64, Arc<ProgressListener>>>);

pub(super) struct ProgressListener {
    on_progress: Option<OnProgress>,
    state: Mutex<ProgressState>,
}

struct ProgressState {
    last: Instant,
    tokens: u32,
    refilled: Instant,
}

/// A subscription to the progress of one call, removed on drop.
pub(super) struct ProgressSubscription<'a> {
    all: &'a ProgressListeners,
    token: i64,
    listener: Arc<ProgressListener>,
}

impl CallProgress {
    pub(super) fn new(progress: f64, total: Option<f64>, message: Option<&str>) -> CallProgress {
        let message = message.map(|message| clean_line(&cut_text(message, MESSAGE_BYTES)));
        CallProgress { progress, total, message }
    }

    /// Reads a notification's parameters. Returns `None` if they are invalid.
    pub(super) fn read(params: &Value) -> Option<(i64, CallProgress)> {
        let token = params.get("progressToken")?.as_i64()?;
        let progress = params.get("progress").and_then(Value::as_f64).unwrap_or_default();
        let total = params.get("total").and_then(Value::as_f64);
        let message = params.get("message").and_then(Value::as_str);
        Some((token, CallProgress::new(progress, total, message)))
    }
}

impl ProgressListeners {
    pub(super) fn subscribe(
        &self,
        token: i64,
        on_progress: Option<OnProgress>,
    ) -> ProgressSubscription<'_> {
        let now = Instant::now();
        let state = Mutex::new(ProgressState { last: now, tokens: BURST, refilled: now });
        let listener = Arc::new(ProgressListener { on_progress, state });
        self.lock().insert(token, listener.clone());
        ProgressSubscription { all: self, token, listener }
    }

    /// Delivers progress. Ignores calls that nobody waits for.
    pub(crate) fn notify(&self, token: i64, progress: CallProgress) {
        self.notify_at(Instant::now(), token, progress);
    }

    fn notify_at(&self, now: Instant, token: i64, progress: CallProgress) {
        let listener = self.lock().get(&token).cloned();
        if let Some(listener) = listener {
            listener.receive(progress, now);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i64, Arc<ProgressListener>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressListener {
    fn receive(&self, progress: CallProgress, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last = now;
        let refills = now.duration_since(state.refilled).as_millis() / REFILL.as_millis();
        let refills = u32::try_from(refills).unwrap_or(u32::MAX);
        if refills > 0 {
            state.tokens = state.tokens.saturating_add(refills).min(BURST);
            state.refilled = now;
        }
        let Some(tokens) = state.tokens.checked_sub(1) else { return };
        state.tokens = tokens;
        drop(state);
        if let Some(on_progress) = &self.on_progress {
            on_progress(progress);
        }
    }
}

impl ProgressSubscription<'_> {
    /// Returns the time of the last progress, or of the start.
    pub(super) fn last(&self) -> Instant {
        self.listener.state.lock().unwrap_or_else(PoisonError::into_inner).last
    }
}

impl Drop for ProgressSubscription<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(&self.token);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flood_is_rate_limited() {
        let listeners = ProgressListeners::default();
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = told.clone();
        let on_progress: OnProgress =
            Arc::new(move |progress| sink.lock().expect("a lock").push(progress.progress));
        let subscription = listeners.subscribe(7, Some(on_progress));
        let begun = subscription.last();
        let tell = |now: Instant, token: i64, progress: u32| {
            let params = json!({"progressToken": token, "progress": progress});
            let (token, progress) = CallProgress::read(&params).expect("progress");
            listeners.notify_at(now, token, progress);
        };
        let told = || told.lock().expect("a lock").clone();
        tell(begun + REFILL, 8, 0);
        assert_eq!(subscription.last(), begun);
        for number in 0..1_000 {
            tell(begun, 7, number);
        }
        assert_eq!(told().len(), 100);
        let later = begun + 2 * REFILL;
        for number in 1_000..2_000 {
            tell(later, 7, number);
        }
        assert_eq!(told()[100..], [1000.0, 1001.0]);
        assert_eq!(subscription.last(), later);
        drop(subscription);
        tell(later + REFILL, 7, 5);
        assert_eq!(told().len(), 102);
    }

    #[test]
    fn invalid_progress_is_dropped() {
        assert_eq!(CallProgress::read(&json!({"progress": 1})), None);
        assert_eq!(CallProgress::read(&json!({"progressToken": "1", "progress": 1})), None);
        let odd = json!({"progressToken": 1, "progress": "half", "total": null, "message": "a\nb"});
        let read = CallProgress { progress: 0.0, total: None, message: Some("a b".to_owned()) };
        assert_eq!(CallProgress::read(&odd), Some((1, read)));
    }
}
