use std::time::Duration;

use tokio::time::Instant;

/// Maximum total time for which the clock of one run may be paused.
const STOPPED_AT_MOST: Duration = Duration::from_secs(60 * 60);

/// The wall clock of a run. Paused while the guest waits for a human.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    deadline: Instant,
    stopped: Option<Instant>,
    may_stop_for: Duration,
}

impl Clock {
    pub(crate) fn new(deadline: Instant) -> Clock {
        Clock { deadline, stopped: None, may_stop_for: STOPPED_AT_MOST }
    }

    /// Returns the current deadline; while paused, the latest possible one.
    pub(crate) fn deadline(&self) -> Instant {
        match self.stopped {
            Some(_) => self.deadline + self.may_stop_for,
            None => self.deadline,
        }
    }

    pub(crate) fn stop(&mut self, now: Instant) {
        self.stopped.get_or_insert(now);
    }

    pub(crate) fn go_on(&mut self, now: Instant) {
        let Some(stopped) = self.stopped.take() else { return };
        let stood = now.saturating_duration_since(stopped).min(self.may_stop_for);
        self.deadline += stood;
        self.may_stop_for -= stood;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_which_it_stands_does_not_count_but_has_an_end() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut clock = Clock::new(at(30));
        clock.stop(at(10));
        clock.stop(at(15));
        assert_eq!(clock.deadline(), at(30 + 3600));
        clock.go_on(at(110));
        clock.go_on(at(120));
        assert_eq!(clock.deadline(), at(130));
        clock.stop(at(120));
        assert_eq!(clock.deadline(), at(130 + 3500));
        clock.go_on(at(10_000));
        assert_eq!(clock.deadline(), at(130 + 3500));
        clock.stop(at(10_001));
        assert_eq!(clock.deadline(), at(130 + 3500));
    }
}
