//! Counts the requests of one token.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const WINDOW_S: u64 = 60;

/// A window of 60 seconds that slides second by second, so that no 60 seconds ever have more
/// requests than allowed.
pub(crate) struct RateLimit {
    max: u32,
    start: Instant,
    seconds: Mutex<Vec<(u64, u32)>>,
}

impl RateLimit {
    pub(crate) fn new(max: u32, start: Instant) -> RateLimit {
        RateLimit { max, start, seconds: Mutex::default() }
    }

    /// Counts a request, or returns how long to wait until one is allowed.
    ///
    /// THREAT[HTTP-5]: what counts is the token, whatever address the request claims to come from.
    pub(crate) fn take(&self, now: Instant) -> Result<(), Duration> {
        let now_s = now.saturating_duration_since(self.start).as_secs();
        let mut seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        // A request at the start of a second and one at the end of the 60th after it are less than
        // 60 seconds and one apart, so the 60th second before still counts.
        seconds.retain(|(second, _)| second + WINDOW_S >= now_s);
        let used: u32 = seconds.iter().map(|(_, count)| *count).sum();
        if used >= self.max {
            let oldest = seconds.first().map_or(now_s, |(second, _)| *second);
            let wait = (oldest + WINDOW_S + 1).saturating_sub(now_s);
            return Err(Duration::from_secs(wait.max(1)));
        }
        match seconds.last_mut() {
            Some((second, count)) if *second == now_s => *count += 1,
            _ => seconds.push((now_s, 1)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_5_no_minute_has_more_requests_than_allowed() {
        let start = Instant::now();
        let limit = RateLimit::new(30, start);
        let mut taken = Vec::new();
        // Thirty just before each edge of a minute, thirty just after, for five minutes.
        for minute in 1..6_u64 {
            for ms in [minute * 60_000 - 1, minute * 60_000 + 1] {
                let now = start + Duration::from_millis(ms);
                taken.extend((0..30).filter(|_| limit.take(now).is_ok()).map(|_| ms));
            }
        }
        for first in &taken {
            let within = taken.iter().filter(|ms| (*first..first + 60_000).contains(*ms)).count();
            assert!(within <= 30, "{within} from {first}");
        }
        assert!(taken.len() >= 60, "{}", taken.len());
        let wait = limit.take(start + Duration::from_secs(300)).expect_err("full");
        assert!(limit.take(start + Duration::from_secs(300) + wait).is_ok(), "{wait:?}");
    }
}
