use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts durations by fixed upper bounds. Threads count without waiting for each other.
#[derive(Debug)]
pub struct Histogram {
    bounds_ms: &'static [u64],
    /// One for each bound, and one for longer durations.
    buckets: Box<[AtomicU64]>,
    sum_us: AtomicU64,
}

/// A snapshot of a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramCounts {
    /// Each upper bound, with the number of durations that are not longer.
    pub within: Vec<(Duration, u64)>,
    pub count: u64,
    pub sum: Duration,
}

impl Histogram {
    /// The bounds must ascend.
    pub fn new(bounds_ms: &'static [u64]) -> Histogram {
        let buckets = (0..=bounds_ms.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds_ms, buckets, sum_us: AtomicU64::new(0) }
    }

    pub fn count(&self, duration: Duration) {
        let is_below = |bound: &u64| Duration::from_millis(*bound) < duration;
        let at = self.bounds_ms.partition_point(is_below);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub fn snapshot(&self) -> HistogramCounts {
        let mut count = 0;
        let mut counts = self.buckets.iter().map(|bucket| {
            count += bucket.load(Ordering::Relaxed);
            count
        });
        let bounds = self.bounds_ms.iter().map(|bound| Duration::from_millis(*bound));
        let within = bounds.zip(&mut counts).collect();
        let count = counts.last().unwrap_or_default();
        let sum = Duration::from_micros(self.sum_us.load(Ordering::Relaxed));
        HistogramCounts { within, count, sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_up_to_each_bound() {
        let histogram = Histogram::new(&[10, 100]);
        for ms in [0, 10, 11, 100, 5_000] {
            histogram.count(Duration::from_millis(ms));
        }
        let counts = histogram.snapshot();
        let within: Vec<u64> = counts.within.iter().map(|(_, count)| *count).collect();
        assert_eq!((within, counts.count), (vec![2, 4], 5));
        assert_eq!(counts.sum, Duration::from_millis(5_121));
    }
}
