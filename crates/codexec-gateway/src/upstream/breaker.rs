//! The circuit breaker of a server that keeps failing. A pure state machine: callers pass in the
//! time.

use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that open the breaker.
pub(crate) const FAILURES: u32 = 5;
/// The longest pause that a server's `Retry-After` can request.
pub(crate) const LONGEST_BACKOFF: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Breaker {
    /// How long the breaker stays open before one call may probe.
    open_for: Duration,
    phase: BreakerPhase,
    /// Counts openings, so that a call from before an opening does not affect the state after it.
    era: u64,
    /// The server asked for no requests until then.
    backoff_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BreakerPhase {
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
pub(crate) struct CallPass {
    era: u64,
    is_probe: bool,
}

/// What a call's end says about the server's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallVerdict {
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
pub(crate) enum BreakerRefusal {
    /// Too many failures in a row.
    Open { left: Duration },
    /// Too many failures, and one call is testing whether the server has recovered.
    Probing,
    /// The server asked for a pause.
    Backoff { left: Duration },
}

impl Default for BreakerPhase {
    fn default() -> BreakerPhase {
        BreakerPhase::Closed { failures: 0 }
    }
}

impl Breaker {
    pub(crate) fn new(open_for: Duration) -> Breaker {
        Breaker { open_for, phase: BreakerPhase::default(), era: 0, backoff_until: None }
    }

    pub(crate) fn admit(&mut self, now: Instant) -> Result<CallPass, BreakerRefusal> {
        if let Some(until) = self.backoff_until.filter(|until| *until > now) {
            return Err(BreakerRefusal::Backoff { left: until - now });
        }
        self.backoff_until = None;
        match self.phase {
            BreakerPhase::Closed { .. } => Ok(CallPass { era: self.era, is_probe: false }),
            BreakerPhase::Open { until } if until > now => {
                Err(BreakerRefusal::Open { left: until - now })
            }
            BreakerPhase::Open { .. } => {
                self.phase = BreakerPhase::Probing;
                Ok(CallPass { era: self.era, is_probe: true })
            }
            BreakerPhase::Probing => Err(BreakerRefusal::Probing),
        }
    }

    pub(crate) fn record(&mut self, pass: &CallPass, verdict: CallVerdict, now: Instant) {
        if let CallVerdict::Busy(wanted) = verdict {
            let until = now + wanted.min(LONGEST_BACKOFF);
            self.backoff_until = Some(self.backoff_until.map_or(until, |old| old.max(until)));
        }
        if pass.era != self.era {
            return;
        }
        match (verdict, self.phase) {
            (CallVerdict::Answered | CallVerdict::Busy(_), BreakerPhase::Probing)
                if pass.is_probe =>
            {
                self.phase = BreakerPhase::default();
            }
            (CallVerdict::Failed, BreakerPhase::Probing) if pass.is_probe => {
                self.open(now, self.open_for);
            }
            // Lets the next call probe at once.
            (CallVerdict::Unknown, BreakerPhase::Probing) if pass.is_probe => {
                self.open(now, Duration::ZERO);
            }
            (CallVerdict::Answered | CallVerdict::Busy(_), BreakerPhase::Closed { .. }) => {
                self.phase = BreakerPhase::default();
            }
            (CallVerdict::Failed, BreakerPhase::Closed { failures }) if failures + 1 < FAILURES => {
                self.phase = BreakerPhase::Closed { failures: failures + 1 };
            }
            (CallVerdict::Failed, BreakerPhase::Closed { .. }) => self.open(now, self.open_for),
            (CallVerdict::Unknown, _) | (_, BreakerPhase::Open { .. } | BreakerPhase::Probing) => {}
        }
    }

    pub(crate) fn phase(&self) -> BreakerPhase {
        self.phase
    }

    /// Returns the end of the pause that the server asked for, if it is still running.
    pub(crate) fn backoff_until(&self, now: Instant) -> Option<Instant> {
        self.backoff_until.filter(|until| *until > now)
    }

    fn open(&mut self, now: Instant, open_for: Duration) {
        self.era += 1;
        self.phase = BreakerPhase::Open { until: now + open_for };
    }
}

#[cfg(test)]
mod tests;
