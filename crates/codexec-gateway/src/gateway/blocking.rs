//! Work that would block the event loop, moved to blocking threads: few at a time, and one at a
//! time for each caller.

use std::sync::Arc;

use codexec_types::{CallCode, CallError, Json};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::Gateway;

/// JSON up to this size is parsed on the event loop.
const SHORT_BYTES: usize = 16 << 10;
/// Rendering this many values takes less than a millisecond.
const FEW_VALUES: usize = 2_000;
/// Text counts as one more value for this many bytes.
const BYTES_PER_VALUE: usize = 32;
/// Concurrent work without a caller: the user's own searches and lists.
pub(super) const OWN_PERMITS: usize = 4;

/// Returns how many callers are served concurrently: one thread per core, two to four.
pub(super) fn count_threads() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).clamp(2, 4)
}

impl Gateway {
    /// Runs work on a blocking thread. If the caller is dropped before its turn, the work is
    /// skipped; work that has begun runs to its end, so it must be finite.
    ///
    /// THREAT[ORD-3]: a caller has one permit, so its work never takes all threads.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let failed =
            || CallError::new(CallCode::UpstreamError, "internal error: the work did not finish");
        let permit = Arc::clone(&self.work_permit).acquire_owned().await.map_err(|_| failed())?;
        let threads = Arc::clone(&self.inner.work_threads);
        let thread = threads.acquire_owned().await.map_err(|_| failed())?;
        let held = move || {
            let _held = (permit, thread);
            work()
        };
        tokio::task::spawn_blocking(held).await.map_err(|_| failed())
    }

    /// Parses JSON, on a blocking thread if it is long. Returns `None` if the text is invalid or
    /// nested too deeply.
    pub async fn parse_json(&self, json: &Json) -> Result<Option<Value>, CallError> {
        if json.text().len() <= SHORT_BYTES {
            return Ok(json.to_value().ok());
        }
        let json = json.clone();
        self.run_blocking(move || json.to_value().ok()).await
    }

    /// Serializes a value for a guest, on a blocking thread if it is large.
    pub async fn write_json(&self, value: Value) -> Result<Json, CallError> {
        if !is_large(&value) {
            return self.to_bounded_json(&value);
        }
        let gateway = self.clone();
        self.run_blocking(move || gateway.to_bounded_json(&value)).await?
    }

    pub(super) fn new_work_permit() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(1))
    }
}

/// Returns true if a value is too large to render between two events of the event loop. Stops
/// counting as soon as that is clear.
pub(super) fn is_large(value: &Value) -> bool {
    fn count(value: &Value, left: usize) -> usize {
        let left = left.saturating_sub(1);
        match value {
            Value::String(text) => left.saturating_sub(text.len() / BYTES_PER_VALUE),
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

#[cfg(test)]
mod tests;
