//! Counts requests, for `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;

/// The upper bounds of the histogram, in milliseconds.
const BOUNDS_MS: [u64; 11] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

/// Requests by route and status. A route is one of a few fixed words, so the number of entries has
/// a bound.
#[derive(Default)]
pub(crate) struct RequestCounts(Mutex<BTreeMap<(&'static str, u16), RequestCount>>);

#[derive(Clone, Default)]
struct RequestCount {
    total: u64,
    seconds: f64,
    /// How many took at most as long as the bound with the same index.
    within: [u64; BOUNDS_MS.len()],
}

impl RequestCounts {
    pub(crate) fn add(&self, route: &'static str, status: StatusCode, took: Duration) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((route, status.as_u16())).or_default();
        count.total += 1;
        count.seconds += took.as_secs_f64();
        for (within, bound) in count.within.iter_mut().zip(BOUNDS_MS) {
            *within += u64::from(took <= Duration::from_millis(bound));
        }
    }

    /// Writes the counts in the text format of Prometheus.
    pub(crate) fn write(&self) -> String {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = String::from(
            "# HELP http_requests_total Requests by route and status\n\
             # TYPE http_requests_total counter\n",
        );
        for ((route, status), count) in &counts {
            let labels = format!("route=\"{route}\",status=\"{status}\"");
            let _ = writeln!(text, "http_requests_total{{{labels}}} {}", count.total);
        }
        let name = "http_request_duration_seconds";
        let _ = writeln!(text, "# HELP {name} Time until the response began");
        let _ = writeln!(text, "# TYPE {name} histogram");
        for ((route, status), count) in &counts {
            let labels = format!("route=\"{route}\",status=\"{status}\"");
            for (within, bound) in count.within.iter().zip(BOUNDS_MS) {
                let bound = Duration::from_millis(bound).as_secs_f64();
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {within}");
            }
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", count.total);
            let _ = writeln!(text, "{name}_sum{{{labels}}} {}", count.seconds);
            let _ = writeln!(text, "{name}_count{{{labels}}} {}", count.total);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_and_status() {
        let counts = RequestCounts::default();
        counts.add("mcp", StatusCode::OK, Duration::from_millis(7));
        counts.add("mcp", StatusCode::OK, Duration::from_secs(20));
        counts.add("other", StatusCode::NOT_FOUND, Duration::ZERO);
        let text = counts.write();
        for line in [
            "http_requests_total{route=\"mcp\",status=\"200\"} 2",
            "http_requests_total{route=\"other\",status=\"404\"} 1",
            "http_request_duration_seconds_bucket{route=\"mcp\",status=\"200\",le=\"0.005\"} 0",
            "http_request_duration_seconds_bucket{route=\"mcp\",status=\"200\",le=\"0.01\"} 1",
            "http_request_duration_seconds_bucket{route=\"mcp\",status=\"200\",le=\"+Inf\"} 2",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
    }
}
