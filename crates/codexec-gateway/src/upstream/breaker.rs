//! Whether a server that keeps failing is asked again. A state and the time of now, no more: who
//! uses it keeps the clock.

use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that open it.
pub(crate) const FAILURES: u32 = 5;
/// A server that asks for more patience than this is tried earlier.
pub(crate) const LONGEST_HOLD: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Breaker {
    /// How long it stays open before one call may try.
    length: Duration,
    phase: Phase,
    /// Counts the openings, so that a call from before one says nothing about after it.
    era: u64,
    /// The server itself asked to be left alone until then.
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
    /// One call is on its way to find out.
    Probing,
}

/// The leave to make one call. Whoever has it says how the call ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    era: u64,
    is_probe: bool,
}

/// How a call ended, as far as the server's health goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answered, be it with an error of the tool.
    Answered,
    /// It ended, or did not answer in time, or could not be reached.
    Failed,
    /// It asked to be left alone for so long.
    Busy(Duration),
    /// The call never came so far as to show anything.
    Unknown,
}

/// Why a call is not made, and when it is worth another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It failed too often.
    Open { left: Duration },
    /// It failed too often, and one call is on its way to see whether that is over.
    Probing,
    /// It asked for patience.
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
            // Somebody else may find out.
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

    /// Until when the server asked to be left alone, if that is still to come.
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
