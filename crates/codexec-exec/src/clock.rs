use std::time::Duration;

use tokio::time::Instant;

/// Maximum total time for which the clock of one run may be paused.
const MAX_PAUSE: Duration = Duration::from_secs(60 * 60);

/// The wall clock of a run. Paused while the guest waits for a human.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    deadline: Instant,
    paused: Option<Instant>,
    pause_left: Duration,
}

impl Clock {
    pub(crate) fn new(deadline: Instant) -> Clock {
        Clock { deadline, paused: None, pause_left: MAX_PAUSE }
    }

    /// Returns the current deadline; while paused, the latest possible one.
    pub(crate) fn deadline(&self) -> Instant {
        match self.paused {
            Some(_) => self.deadline + self.pause_left,
            None => self.deadline,
        }
    }

    pub(crate) fn pause(&mut self, now: Instant) {
        self.paused.get_or_insert(now);
    }

    pub(crate) fn resume(&mut self, now: Instant) {
        let Some(paused) = self.paused.take() else { return };
        let pause = now.saturating_duration_since(paused).min(self.pause_left);
        self.deadline += pause;
        self.pause_left -= pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_do_not_count_but_are_limited() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut clock = Clock::new(at(30));
        clock.pause(at(10));
        clock.pause(at(15));
        assert_eq!(clock.deadline(), at(30 + 3600));
        clock.resume(at(110));
        clock.resume(at(120));
        assert_eq!(clock.deadline(), at(130));
        clock.pause(at(120));
        assert_eq!(clock.deadline(), at(130 + 3500));
        clock.resume(at(10_000));
        assert_eq!(clock.deadline(), at(130 + 3500));
        clock.pause(at(10_001));
        assert_eq!(clock.deadline(), at(130 + 3500));
    }
}
