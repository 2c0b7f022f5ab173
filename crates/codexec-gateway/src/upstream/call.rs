//! One call to one server: whether it may be made now, its turn, and what it shows of the server.

use std::sync::{Arc, MutexGuard, PoisonError};

use rmcp::model::JsonObject;
use serde_json::Value;
use tokio::time::{Duration, Instant};

use super::{
    Upstream, UpstreamError,
    breaker::{self, Breaker, Pass, Refusal, Verdict},
    connection::{Connection, Patience},
    failure::seconds,
    gate::Crowded,
    progress::OnProgress,
};

/// A call that was given up after so long, without a word from its server all the while, counts as
/// one that failed: its caller had less patience than we have, and was not served either.
const SILENCE: Duration = Duration::from_secs(1);

/// One call under way. Dropped before its end, it is still accounted for.
struct Attempt<'a> {
    upstream: &'a Upstream,
    pass: Pass,
    sent: Option<Sent>,
    is_over: bool,
}

struct Sent {
    at: Instant,
    connection: Arc<Connection>,
    /// The server's signs of life before it.
    signs: u64,
}

impl Upstream {
    /// Calls a tool and gives its raw result. Starts the server if need be.
    pub(crate) async fn call(
        self: &Arc<Upstream>,
        tool: &str,
        args: JsonObject,
        on_progress: Option<OnProgress>,
    ) -> Result<Value, UpstreamError> {
        let pass = self.breaker().admit(Instant::now()).map_err(|err| self.refusal(err))?;
        let mut attempt = Attempt { upstream: self, pass, sent: None, is_over: false };
        let _place = self.gate.place().await.map_err(|err| self.crowded(err))?;
        let connection = self.connected().await?;
        let common = &self.common;
        let _share = self.gate.share(common).await.map_err(|err| self.crowded(err))?;
        let signs = connection.signs();
        attempt.sent = Some(Sent { at: Instant::now(), connection: connection.clone(), signs });
        self.counts.sent();
        let called = connection.call(tool, args, self.patience(), on_progress).await;
        attempt.end(&called);
        called
    }

    fn patience(&self) -> Patience {
        let idle = self.config.narrow.call_timeout.unwrap_or(self.settings.call_timeout);
        Patience { idle, total: self.settings.call_total_timeout.max(idle) }
    }

    pub(super) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusal(&self, refusal: Refusal) -> UpstreamError {
        self.counts.refused();
        let reason = || self.counts.last_error().unwrap_or_else(|| "no answer".to_owned());
        match refusal {
            Refusal::Open { left } => UpstreamError::Broken {
                failures: breaker::FAILURES,
                reason: reason(),
                retry_s: seconds(left),
            },
            Refusal::Probing => UpstreamError::Probed { reason: reason(), retry_s: 1 },
            Refusal::Held { left } => UpstreamError::Busy { retry_after: left },
        }
    }

    /// How long it may take until those who wait are served, by how long calls took so far.
    fn crowded(&self, crowded: Crowded) -> UpstreamError {
        self.counts.refused();
        let Crowded { size, waiting, waited } = crowded;
        let rounds = u32::try_from((waiting + 1).div_ceil(size)).unwrap_or(u32::MAX);
        let expected = self.counts.latency().mean().saturating_mul(rounds);
        let retry_s = seconds(expected.min(self.settings.queue_wait));
        match waited {
            Some(waited) => {
                UpstreamError::Stuck { under_way: size, waited_s: seconds(waited), retry_s }
            }
            None => UpstreamError::Crowded { under_way: size, waiting, retry_s },
        }
    }
}

impl Attempt<'_> {
    fn end(&mut self, called: &Result<Value, UpstreamError>) {
        let took = self.sent.as_ref().map(|sent| sent.at.elapsed()).unwrap_or_default();
        let verdict = match called {
            Ok(_) => Verdict::Answered,
            Err(error) => error.verdict(),
        };
        match (verdict, called) {
            (Verdict::Failed, Err(error)) => self.upstream.counts.failed(error),
            (Verdict::Answered, _) => self.upstream.counts.answered(took),
            (Verdict::Failed | Verdict::Busy(_) | Verdict::Unknown, _) => {}
        }
        self.settle(verdict);
    }

    fn settle(&mut self, verdict: Verdict) {
        self.is_over = true;
        self.upstream.breaker().settle(&self.pass, verdict, Instant::now());
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let in_vain = self
            .sent
            .as_ref()
            .filter(|sent| sent.at.elapsed() >= SILENCE && sent.connection.signs() == sent.signs);
        match in_vain {
            Some(sent) => {
                let waited = sent.at.elapsed();
                self.upstream.counts.failed(&UpstreamError::Timeout(waited));
                self.settle(Verdict::Failed);
            }
            None => self.settle(Verdict::Unknown),
        }
    }
}
