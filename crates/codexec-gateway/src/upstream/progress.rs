//! Progress of running calls. It restarts the call's timeout and reaches the caller; a flood of it
//! costs neither wakeups nor memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use crate::clean::{clean_line, cut};
pub(super) use crate::{CallProgress as Progress, OnProgress};

/// A token bucket: its size, and the time to refill one token.
const BURST: u32 = 100;
const REFILL: Duration = Duration::from_millis(50);
const MESSAGE_BYTES: usize = 1 << 10;

/// The listeners of running calls, by progress token.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<HashMap<i64, Arc<Listener>>>);

pub(super) struct Listener {
    on_progress: Option<OnProgress>,
    heard: Mutex<Heard>,
}

struct Heard {
    last: Instant,
    room: u32,
    refilled: Instant,
}

/// Unsubscribes when dropped.
pub(super) struct Listening<'a> {
    all: &'a Listeners,
    token: i64,
    listener: Arc<Listener>,
}

impl Progress {
    pub(super) fn new(progress: f64, total: Option<f64>, message: Option<&str>) -> Progress {
        let message = message.map(|message| clean_line(&cut(message, MESSAGE_BYTES)));
        Progress { progress, total, message }
    }

    /// Reads a notification's parameters. Returns `None` if they are invalid.
    pub(super) fn read(params: &Value) -> Option<(i64, Progress)> {
        let token = params.get("progressToken")?.as_i64()?;
        let progress = params.get("progress").and_then(Value::as_f64).unwrap_or_default();
        let total = params.get("total").and_then(Value::as_f64);
        let message = params.get("message").and_then(Value::as_str);
        Some((token, Progress::new(progress, total, message)))
    }
}

impl Listeners {
    pub(super) fn listen(&self, token: i64, on_progress: Option<OnProgress>) -> Listening<'_> {
        let now = Instant::now();
        let heard = Mutex::new(Heard { last: now, room: BURST, refilled: now });
        let listener = Arc::new(Listener { on_progress, heard });
        self.lock().insert(token, listener.clone());
        Listening { all: self, token, listener }
    }

    /// Delivers progress. Ignores calls that nobody waits for.
    pub(crate) fn tell(&self, token: i64, progress: Progress) {
        self.tell_at(Instant::now(), token, progress);
    }

    fn tell_at(&self, now: Instant, token: i64, progress: Progress) {
        let listener = self.lock().get(&token).cloned();
        if let Some(listener) = listener {
            listener.hear(progress, now);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i64, Arc<Listener>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    fn hear(&self, progress: Progress, now: Instant) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.last = now;
        let refills = now.duration_since(heard.refilled).as_millis() / REFILL.as_millis();
        let refills = u32::try_from(refills).unwrap_or(u32::MAX);
        if refills > 0 {
            heard.room = heard.room.saturating_add(refills).min(BURST);
            heard.refilled = now;
        }
        let Some(room) = heard.room.checked_sub(1) else { return };
        heard.room = room;
        drop(heard);
        if let Some(on_progress) = &self.on_progress {
            on_progress(progress);
        }
    }
}

impl Listening<'_> {
    /// Returns the time of the last progress, or of the start.
    pub(super) fn last(&self) -> Instant {
        self.listener.heard.lock().unwrap_or_else(PoisonError::into_inner).last
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(&self.token);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flood_is_heard_and_passed_on_in_part() {
        let listeners = Listeners::default();
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = told.clone();
        let on_progress: OnProgress =
            Arc::new(move |progress| sink.lock().expect("a lock").push(progress.progress));
        let listening = listeners.listen(7, Some(on_progress));
        let begun = listening.last();
        let tell = |now: Instant, token: i64, progress: u32| {
            let params = json!({"progressToken": token, "progress": progress});
            let (token, progress) = Progress::read(&params).expect("progress");
            listeners.tell_at(now, token, progress);
        };
        let told = || told.lock().expect("a lock").clone();
        tell(begun + REFILL, 8, 0);
        assert_eq!(listening.last(), begun);
        for number in 0..1_000 {
            tell(begun, 7, number);
        }
        assert_eq!(told().len(), 100);
        let later = begun + 2 * REFILL;
        for number in 1_000..2_000 {
            tell(later, 7, number);
        }
        assert_eq!(told()[100..], [1000.0, 1001.0]);
        assert_eq!(listening.last(), later);
        drop(listening);
        tell(later + REFILL, 7, 5);
        assert_eq!(told().len(), 102);
    }

    #[test]
    fn what_is_no_progress_is_dropped() {
        assert_eq!(Progress::read(&json!({"progress": 1})), None);
        assert_eq!(Progress::read(&json!({"progressToken": "1", "progress": 1})), None);
        let odd = json!({"progressToken": 1, "progress": "half", "total": null, "message": "a\nb"});
        let read = Progress { progress: 0.0, total: None, message: Some("a b".to_owned()) };
        assert_eq!(Progress::read(&odd), Some((1, read)));
    }
}
