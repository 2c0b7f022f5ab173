//! One call to one server: whether it may be made now, its turn, and what it shows of the server.

use std::sync::{Arc, MutexGuard, PoisonError};

use rmcp::model::{CallToolRequestParams, ClientRequest, CustomRequest};
use serde_json::Value;
use tokio::time::{Duration, Instant};

use super::{
    Upstream, UpstreamError,
    breaker::{self, Breaker, Pass, Refusal, Verdict},
    connection::{Connection, Patience},
    failure::seconds,
    gate::Crowded,
};
use crate::{Caller, tool::Tool};

/// A call that was given up after so long, without a word from its server all the while, counts as
/// one that failed: its caller had less patience than we have, and was not served either.
const SILENCE: Duration = Duration::from_secs(1);

/// What is asked of a server.
enum Wish<'a> {
    /// A tool: the name that was asked for, and the definition that was found under it.
    Tool { asked: &'a str, tool: &'a Arc<Tool>, params: CallToolRequestParams },
    /// Anything else: a method and its parameters.
    Other(&'static str, Value),
}

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
    /// Calls a tool by the definition under which it was found, and gives its raw result. Starts
    /// the server if need be.
    pub(crate) async fn call(
        self: &Arc<Upstream>,
        asked: &str,
        tool: &Arc<Tool>,
        params: CallToolRequestParams,
        caller: &Caller,
    ) -> Result<Value, UpstreamError> {
        self.attempt(Wish::Tool { asked, tool, params }, caller).await
    }

    /// Asks for something that is no tool call, and is held to the same.
    pub(crate) async fn ask(
        self: &Arc<Upstream>,
        method: &'static str,
        params: Value,
    ) -> Result<Value, UpstreamError> {
        self.attempt(Wish::Other(method, params), &Caller::default()).await
    }

    async fn attempt(
        self: &Arc<Upstream>,
        wish: Wish<'_>,
        caller: &Caller,
    ) -> Result<Value, UpstreamError> {
        let pass = self.breaker().admit(Instant::now()).map_err(|err| self.refusal(err))?;
        let mut attempt = Attempt { upstream: self, pass, sent: None, is_over: false };
        let _place = self.gate.place().await.map_err(|err| self.crowded(err))?;
        let connection = self.connected().await?;
        let common = &self.shared.common;
        let _share = self.gate.share(common).await.map_err(|err| self.crowded(err))?;
        if let Wish::Tool { asked, tool, .. } = &wish {
            self.agreed(&connection).await?;
            if !self.is_agreed(&connection, asked, tool) {
                return Err(UpstreamError::Outdated);
            }
        }
        let signs = connection.signs();
        attempt.sent = Some(Sent { at: Instant::now(), connection: connection.clone(), signs });
        self.counts.sent();
        let waiting = connection.enter(self.name(), caller);
        let on_progress = caller.progress().cloned();
        let (patience, waiting) = (self.patience(), waiting.as_ref());
        let called = match wish {
            Wish::Tool { params, .. } => {
                connection.call(params, patience, on_progress, waiting).await
            }
            Wish::Other(method, params) => {
                let request = CustomRequest::new(method, Some(params));
                let request = ClientRequest::CustomRequest(request);
                connection.ask(request, patience, on_progress, waiting).await
            }
        };
        attempt.end(&called);
        called
    }

    fn patience(&self) -> Patience {
        let idle = self.config.narrow.call_timeout.unwrap_or(self.shared.settings.call_timeout);
        Patience { idle, total: self.shared.settings.call_total_timeout.max(idle) }
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
        let retry_s = seconds(expected.min(self.shared.settings.queue_wait));
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
