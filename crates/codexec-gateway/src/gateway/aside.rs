//! Work that would keep the event loop from everybody else: done on threads beside it, few at a
//! time, and one at a time for each caller.

use std::sync::Arc;

use codexec_types::{CallCode, CallError, Json};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::Gateway;

/// A shorter JSON text is taken apart where it is.
const SHORT_BYTES: usize = 16 << 10;
/// What takes less than a millisecond to render.
const FEW_VALUES: usize = 2_000;
/// A text of this length counts as one value more.
const LETTERS_PER_VALUE: usize = 32;
/// What nobody in particular asks for: the user's own searches and lists.
pub(super) const OWN_TURNS: usize = 4;

/// How many of all callers are served at the same time: one core stays for the event loop, and
/// two threads share the work where there is only one other.
pub(super) fn count_places() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).clamp(2, 4)
}

impl Gateway {
    /// Does some work beside the event loop. A caller that leaves while it waits for its turn does
    /// not have it done; what was begun goes on to its end, so it must have one, and nobody hears
    /// of it.
    ///
    /// THREAT[ORD-3]: a caller has one turn, so its work never takes the places of all others.
    pub async fn work_aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let failed = || CallError::new(CallCode::UpstreamError, "internal error: it was not done");
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|_| failed())?;
        let places = Arc::clone(&self.inner.places);
        let place = places.acquire_owned().await.map_err(|_| failed())?;
        let held = move || {
            let _held = (turn, place);
            work()
        };
        tokio::task::spawn_blocking(held).await.map_err(|_| failed())
    }

    /// Takes a JSON text apart, beside the event loop where it is long. Fails where it is no JSON
    /// or too deep.
    pub async fn parse(&self, json: &Json) -> Result<Option<Value>, CallError> {
        if json.text().len() <= SHORT_BYTES {
            return Ok(json.to_value().ok());
        }
        let json = json.clone();
        self.work_aside(move || json.to_value().ok()).await
    }

    /// Writes a value as text for a guest, beside the event loop where there is much of it.
    pub async fn write_json(&self, value: Value) -> Result<Json, CallError> {
        if !is_large(&value) {
            return self.bounded(&value);
        }
        let gateway = self.clone();
        self.work_aside(move || gateway.bounded(&value)).await?
    }

    pub(super) fn new_turn() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(1))
    }
}

/// Whether there is more in it than an event loop can render between two events. Looks no further
/// than it must to tell.
pub(super) fn is_large(value: &Value) -> bool {
    fn count(value: &Value, left: usize) -> usize {
        let left = left.saturating_sub(1);
        match value {
            Value::String(text) => left.saturating_sub(text.len() / LETTERS_PER_VALUE),
            Value::Array(list) => list.iter().fold(left, |left, value| match left {
                0 => 0,
                left => count(value, left),
            }),
            Value::Object(fields) => fields.values().fold(left, |left, value| match left {
                0 => 0,
                left => count(value, left),
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => left,
        }
    }
    count(value, FEW_VALUES) == 0
}
