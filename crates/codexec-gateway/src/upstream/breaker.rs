//! The circuit breaker of a server that keeps failing. A pure state machine: callers pass in the
//! time.

use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that open the breaker.
pub(crate) const FAILURES: u32 = 5;
/// The longest pause that a server's `Retry-After` can request.
pub(crate) const LONGEST_HOLD: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Breaker {
    /// How long the breaker stays open before one call may probe.
    length: Duration,
    phase: Phase,
    /// Counts openings, so that a call from before an opening does not affect the state after it.
    era: u64,
    /// The server asked for no requests until then.
    held_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Closed {
        failures: u32,
    },
    Open {
        until: Instant,
    },
    /// One call is testing whether the server has recovered.
    Probing,
}

/// Permission for one call. The holder must record how the call ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    era: u64,
    is_probe: bool,
}

/// What a call's end says about the server's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The server answered, possibly with a tool error.
    Answered,
    /// The server ended, timed out or could not be reached.
    Failed,
    /// The server asked for no requests for this long.
    Busy(Duration),
    /// The call ended too early to say anything.
    Unknown,
}

/// Why a call is not made, and when to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too many failures in a row.
    Open { left: Duration },
    /// Too many failures, and one call is testing whether the server has recovered.
    Probing,
    /// The server asked for a pause.
    Held { left: Duration },
}

impl Default for Phase {
    fn default() -> Phase {
        Phase::Closed { failures: 0 }
    }
}

impl Breaker {
    pub(crate) fn new(length: Duration) -> Breaker {
        Breaker { length, phase: Phase::default(), era: 0, held_until: None }
    }

    pub(crate) fn admit(&mut self, now: Instant) -> Result<Pass, Refusal> {
        if let Some(until) = self.held_until.filter(|until| *until > now) {
            return Err(Refusal::Held { left: until - now });
        }
        self.held_until = None;
        match self.phase {
            Phase::Closed { .. } => Ok(Pass { era: self.era, is_probe: false }),
            Phase::Open { until } if until > now => Err(Refusal::Open { left: until - now }),
            Phase::Open { .. } => {
                self.phase = Phase::Probing;
                Ok(Pass { era: self.era, is_probe: true })
            }
            Phase::Probing => Err(Refusal::Probing),
        }
    }

    pub(crate) fn settle(&mut self, pass: &Pass, verdict: Verdict, now: Instant) {
        if let Verdict::Busy(wanted) = verdict {
            let until = now + wanted.min(LONGEST_HOLD);
            self.held_until = Some(self.held_until.map_or(until, |held| held.max(until)));
        }
        if pass.era != self.era {
            return;
        }
        match (verdict, self.phase) {
            (Verdict::Answered | Verdict::Busy(_), Phase::Probing) if pass.is_probe => {
                self.phase = Phase::default();
            }
            (Verdict::Failed, Phase::Probing) if pass.is_probe => self.open(now, self.length),
            // Lets the next call probe at once.
            (Verdict::Unknown, Phase::Probing) if pass.is_probe => self.open(now, Duration::ZERO),
            (Verdict::Answered | Verdict::Busy(_), Phase::Closed { .. }) => {
                self.phase = Phase::default();
            }
            (Verdict::Failed, Phase::Closed { failures }) if failures + 1 < FAILURES => {
                self.phase = Phase::Closed { failures: failures + 1 };
            }
            (Verdict::Failed, Phase::Closed { .. }) => self.open(now, self.length),
            (Verdict::Unknown, _) | (_, Phase::Open { .. } | Phase::Probing) => {}
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the end of the pause that the server asked for, if it is still running.
    pub(crate) fn held_until(&self, now: Instant) -> Option<Instant> {
        self.held_until.filter(|until| *until > now)
    }

    fn open(&mut self, now: Instant, length: Duration) {
        self.era += 1;
        self.phase = Phase::Open { until: now + length };
    }
}

#[cfg(test)]
mod tests;
