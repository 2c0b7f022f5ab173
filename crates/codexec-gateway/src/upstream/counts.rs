//! Call counters and latencies of one server, for `health` and for metrics.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::UpstreamError;
use codexec_types::{clean_line, cut_text};

const ERROR_BYTES: usize = 300;
/// The upper bounds of the buckets in microseconds; one more bucket holds longer times.
const BOUNDS_US: [u64; 16] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 60_000_000,
];
const BUCKETS: usize = BOUNDS_US.len() + 1;

#[derive(Default)]
pub(crate) struct CallCounters {
    calls: AtomicU64,
    failures: AtomicU64,
    timeouts: AtomicU64,
    refused: AtomicU64,
    starts: AtomicU64,
    total_us: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
    list_hits: AtomicU64,
    list_misses: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// A snapshot of a server's call counters.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct CallCounts {
    /// Tool calls sent to the server.
    pub calls: u64,
    /// Of those, calls that ended without an answer: timeouts, exits, unreachable servers.
    pub failures: u64,
    pub timeouts: u64,
    /// Calls refused before they were sent.
    pub refused: u64,
    pub in_flight: usize,
    pub waiting: usize,
    pub restarts: u64,
    pub latency: Latency,
    /// The last failure, in a sentence.
    pub last_error: Option<String>,
}

/// A histogram of answer times.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Latency {
    pub total: Duration,
    pub count: u64,
    /// Upper bound and count of each bucket; `None` is the unbounded last one.
    pub buckets: Vec<(Option<Duration>, u64)>,
}

impl CallCounters {
    pub(super) fn count_start(&self) {
        self.starts.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a tool that was looked up: in the known list, or by asking the server.
    pub(super) fn count_lookup(&self, is_known: bool) {
        let counter = if is_known { &self.list_hits } else { &self.list_misses };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the lookups in the known list, and those that had to ask the server.
    pub(super) fn lookups(&self) -> (u64, u64) {
        (self.list_hits.load(Ordering::Relaxed), self.list_misses.load(Ordering::Relaxed))
    }

    pub(super) fn count_answer(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS_US.partition_point(|bound| *bound < us);
        self.total_us.fetch_add(us, Ordering::Relaxed);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_failure(&self, error: &UpstreamError) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if matches!(error, UpstreamError::Timeout(_)) {
            self.timeouts.fetch_add(1, Ordering::Relaxed);
        }
        let text = cut_text(&clean_line(&error.to_string()), ERROR_BYTES);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `in_flight` and `waiting` come from the gate.
    pub(super) fn snapshot(&self) -> CallCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CallCounts {
            calls: read(&self.calls),
            failures: read(&self.failures),
            timeouts: read(&self.timeouts),
            refused: read(&self.refused),
            restarts: read(&self.starts).saturating_sub(1),
            latency: self.latency(),
            last_error: self.last_error(),
            ..CallCounts::default()
        }
    }

    pub(super) fn latency(&self) -> Latency {
        let bounds = BOUNDS_US.iter().map(|us| Some(Duration::from_micros(*us))).chain([None]);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let buckets: Vec<(Option<Duration>, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let total = Duration::from_micros(self.total_us.load(Ordering::Relaxed));
        Latency { total, count, buckets }
    }
}

impl Latency {
    pub fn mean(&self) -> Duration {
        let count = u32::try_from(self.count).unwrap_or(u32::MAX);
        self.total.checked_div(count).unwrap_or_default()
    }

    /// Estimates a percentile, exact to its bucket. Returns `None` before the first answer.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut below = 0;
        let mut lower = Duration::ZERO;
        for (bound, count) in &self.buckets {
            if below + count >= rank && *count > 0 {
                let Some(bound) = *bound else { return Some(lower) };
                let part = u32::try_from(rank - below).ok()?;
                let width = (bound - lower).checked_div(u32::try_from(*count).ok()?)?;
                return Some(lower + width * part);
            }
            below += count;
            lower = bound.unwrap_or(lower);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_to_their_bucket() {
        let counts = CallCounters::default();
        assert_eq!(counts.latency().percentile(50), None);
        assert_eq!(counts.latency().mean(), Duration::ZERO);
        for us in [100, 200, 300, 400, 4_000] {
            counts.count_answer(Duration::from_micros(us));
        }
        let latency = counts.latency();
        assert_eq!((latency.count, latency.mean()), (5, Duration::from_micros(1_000)));
        let percentile = |percent| latency.percentile(percent).expect("there are answers");
        assert_eq!(percentile(50), Duration::from_micros(375));
        assert_eq!(percentile(80), Duration::from_micros(500));
        assert_eq!(percentile(95), Duration::from_micros(5_000));
        counts.count_answer(Duration::from_secs(100));
        assert_eq!(counts.latency().percentile(100), Some(Duration::from_secs(60)));
    }

    #[test]
    fn failures_are_counted_by_kind() {
        let counts = CallCounters::default();
        counts.count_failure(&UpstreamError::Timeout(Duration::from_secs(1)));
        counts.count_failure(&UpstreamError::Ended("exit status: 3".to_owned()));
        let now = counts.snapshot();
        assert_eq!((now.failures, now.timeouts), (2, 1));
        assert_eq!(now.last_error.as_deref(), Some("it ended (exit status: 3)"));
    }
}
