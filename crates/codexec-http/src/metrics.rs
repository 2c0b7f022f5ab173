//! Counts requests, for `/metrics`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use codexec_server::{MetricKind, MetricsText};
use codexec_telemetry::Histogram;
use http::{Method, StatusCode};

const BOUNDS_MS: [u64; 11] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

/// Requests by method, endpoint and status. Methods and endpoints are words of closed sets, so the
/// number of entries has a bound. The lock is written only when an entry is new.
#[derive(Default)]
pub(crate) struct RequestCounts(RwLock<BTreeMap<RequestKind, Arc<RequestCount>>>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RequestKind {
    method: &'static str,
    endpoint: &'static str,
}

struct RequestCount {
    statuses: RwLock<BTreeMap<u16, Arc<AtomicU64>>>,
    durations: Histogram,
}

impl RequestCounts {
    pub(crate) fn add(
        &self,
        method: &Method,
        endpoint: &'static str,
        status: StatusCode,
        took: Duration,
    ) {
        let kind = RequestKind { method: method_word(method), endpoint };
        let new =
            || RequestCount { statuses: RwLock::default(), durations: Histogram::new(&BOUNDS_MS) };
        let count = entry(&self.0, kind, new);
        count.durations.count(took);
        let status = entry(&count.statuses, status.as_u16(), AtomicU64::default);
        status.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the counts in the text format of Prometheus.
    pub(crate) fn write(&self) -> String {
        let counts = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = MetricsText::default();
        let name = "http_requests_total";
        text.family(name, MetricKind::Counter, "Requests by method, endpoint and status");
        for (kind, count) in &counts {
            let statuses = count.statuses.read().unwrap_or_else(PoisonError::into_inner).clone();
            for (status, total) in statuses {
                let status = status.to_string();
                let labels =
                    [("method", kind.method), ("endpoint", kind.endpoint), ("status", &*status)];
                text.number(name, &labels, total.load(Ordering::Relaxed));
            }
        }
        let name = "http_request_duration_seconds";
        text.family(name, MetricKind::Histogram, "Time until the response began");
        for (kind, count) in &counts {
            let labels = [("method", kind.method), ("endpoint", kind.endpoint)];
            text.histogram(name, &labels, &count.durations.snapshot());
        }
        text.into_text()
    }
}

/// Returns the entry of a key. Only the first use of a key waits for others.
fn entry<K: Ord, V>(map: &RwLock<BTreeMap<K, Arc<V>>>, key: K, new: impl FnOnce() -> V) -> Arc<V> {
    if let Some(found) = map.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Arc::clone(found);
    }
    let mut map = map.write().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(map.entry(key).or_insert_with(|| Arc::new(new())))
}

/// A client may send any method, so only known ones are named.
fn method_word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_method_endpoint_and_status() {
        let counts = RequestCounts::default();
        let add = |method: &str, endpoint, status, ms| {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            counts.add(&method, endpoint, status, Duration::from_millis(ms));
        };
        add("POST", "mcp", StatusCode::OK, 7);
        add("POST", "mcp", StatusCode::OK, 20_000);
        add("POST", "mcp", StatusCode::NOT_FOUND, 0);
        add("SMUGGLE", "other", StatusCode::NOT_FOUND, 0);
        let text = counts.write();
        for line in [
            "http_requests_total{method=\"POST\",endpoint=\"mcp\",status=\"200\"} 2",
            "http_requests_total{method=\"POST\",endpoint=\"mcp\",status=\"404\"} 1",
            "http_requests_total{method=\"other\",endpoint=\"other\",status=\"404\"} 1",
            "http_request_duration_seconds_bucket{method=\"POST\",endpoint=\"mcp\",le=\"0.01\"} 2",
            "http_request_duration_seconds_count{method=\"POST\",endpoint=\"mcp\"} 3",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
    }
}
