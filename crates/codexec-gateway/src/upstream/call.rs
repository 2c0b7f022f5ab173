//! One call to one server: breaker, queue, and the effect of the result on the server's health.

use std::sync::{Arc, MutexGuard, PoisonError};

use rmcp::model::{CallToolRequestParams, ClientRequest, CustomRequest};
use serde_json::Value;
use tokio::{sync::SemaphorePermit, time::Instant};

use super::{
    Upstream, UpstreamError,
    breaker::{self, Breaker, Pass, Refusal, Verdict},
    connection::Patience,
    failure::seconds,
    gate::Crowded,
};
use crate::{Caller, tool::Tool};

/// A request to a server.
enum Wish<'a> {
    /// A tool call: the requested name, and the definition it resolved to.
    Tool { asked: &'a str, tool: &'a Arc<Tool>, params: CallToolRequestParams },
    /// Any other method, with its parameters.
    Other(&'static str, Value),
}

/// A call in progress. If dropped early, it is still recorded.
struct Attempt<'a> {
    upstream: &'a Upstream,
    pass: Pass,
    sent: Option<Instant>,
    is_over: bool,
}

impl Upstream {
    /// Calls a tool by the definition it was resolved to, and returns the raw result. Starts the
    /// server if needed.
    pub(crate) async fn call(
        self: &Arc<Upstream>,
        asked: &str,
        tool: &Arc<Tool>,
        params: CallToolRequestParams,
        caller: &Caller,
    ) -> Result<Value, UpstreamError> {
        self.attempt(Wish::Tool { asked, tool, params }, caller).await
    }

    /// Sends any other request, under the same limits.
    pub(crate) async fn ask(
        self: &Arc<Upstream>,
        method: &'static str,
        params: Value,
    ) -> Result<Value, UpstreamError> {
        self.attempt(Wish::Other(method, params), &Caller::default()).await
    }

    /// Reserves memory for the arguments of a call, over all callers of this server. Held as long
    /// as the call.
    pub(crate) async fn find_room(
        &self,
        bytes: usize,
    ) -> Result<Option<SemaphorePermit<'_>>, UpstreamError> {
        self.gate.room(bytes).await.map_err(|err| self.crowded(err))
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
        attempt.sent = Some(Instant::now());
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

    /// Estimates the wait from the length of the queue and the mean latency.
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
        let took = self.sent.map(|sent| sent.elapsed()).unwrap_or_default();
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

/// THREAT[UP-10]: a call given up by its own caller says nothing about the server, however long it
/// took. Otherwise one impatient guest would open the breaker for everybody. A server that answers
/// nobody is detected by calls that reach the server's own timeout.
impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.settle(Verdict::Unknown);
        }
    }
}
