//! One call to one server: breaker, queue, and the effect of the result on the server's health.

use std::sync::{Arc, MutexGuard, PoisonError};

use codexec_telemetry::SpanKind;
use rmcp::model::{CallToolRequestParams, ClientRequest, CustomRequest, RequestMetaObject};
use serde_json::Value;
use tokio::{sync::SemaphorePermit, time::Instant};

use super::{
    Upstream, UpstreamError,
    breaker::{self, Breaker, BreakerRefusal, CallPass, CallVerdict},
    connection::CallTimeouts,
    error::round_up_seconds,
    gate::QueueRefusal,
};
use crate::{Caller, tool::Tool};

/// The field of a request's metadata that names the span it belongs to.
pub(super) const TRACE_PARENT: &str = "traceparent";

/// A request to a server.
enum UpstreamRequest<'a> {
    /// A tool call: the requested name, and the definition it resolved to.
    Tool {
        requested_name: &'a str,
        tool: &'a Arc<Tool>,
        params: CallToolRequestParams,
        meta: Option<RequestMetaObject>,
    },
    /// Any other method, with its parameters.
    Other { method: &'static str, params: Value, meta: Option<RequestMetaObject> },
}

/// A call in progress. If dropped early, it is still recorded.
struct CallAttempt<'a> {
    upstream: &'a Upstream,
    pass: CallPass,
    sent: Option<Instant>,
    is_over: bool,
}

impl Upstream {
    /// Calls a tool by the definition it was resolved to, and returns the raw result. Starts the
    /// server if needed.
    pub(crate) async fn call(
        self: &Arc<Upstream>,
        requested_name: &str,
        tool: &Arc<Tool>,
        params: CallToolRequestParams,
        meta: Option<RequestMetaObject>,
        caller: &Caller,
    ) -> Result<Value, UpstreamError> {
        let tracer = &self.shared.settings.tracer;
        let mut span = tracer.start(SpanKind::Client, "tools/call", caller.trace());
        span.set("mcp.method.name", "tools/call");
        span.set("codexec.server", self.name().as_str());
        span.set("gen_ai.tool.name", &tool.name);
        let mut params = params;
        if let Some(context) = span.context() {
            let meta = params.meta.get_or_insert_default();
            meta.insert(TRACE_PARENT.to_owned(), context.to_string().into());
        }
        let request = UpstreamRequest::Tool { requested_name, tool, params, meta };
        let called = self.attempt(request, caller).await;
        if let Err(error) = &called {
            let code = serde_json::to_value(error.call_code()).unwrap_or_default();
            span.fail(code.as_str().unwrap_or_default());
        }
        called
    }

    /// Sends any other request, under the same limits.
    pub(crate) async fn ask(
        self: &Arc<Upstream>,
        method: &'static str,
        params: Value,
    ) -> Result<Value, UpstreamError> {
        self.ask_for(method, params, None, &Caller::default()).await
    }

    /// Sends any other request for a caller that may be asked questions.
    pub(crate) async fn ask_for(
        self: &Arc<Upstream>,
        method: &'static str,
        params: Value,
        meta: Option<RequestMetaObject>,
        caller: &Caller,
    ) -> Result<Value, UpstreamError> {
        self.attempt(UpstreamRequest::Other { method, params, meta }, caller).await
    }

    /// Reserves memory for the arguments of a call, over all callers of this server. Held as long
    /// as the call.
    pub(crate) async fn reserve_argument_memory(
        &self,
        bytes: usize,
    ) -> Result<Option<SemaphorePermit<'_>>, UpstreamError> {
        self.gate.reserve_argument_memory(bytes).await.map_err(|err| self.queue_error(err))
    }

    async fn attempt(
        self: &Arc<Upstream>,
        request: UpstreamRequest<'_>,
        caller: &Caller,
    ) -> Result<Value, UpstreamError> {
        let pass = self.breaker().admit(Instant::now()).map_err(|err| self.breaker_error(err))?;
        let mut attempt = CallAttempt { upstream: self, pass, sent: None, is_over: false };
        let _own = self.gate.acquire_call().await.map_err(|err| self.queue_error(err))?;
        let connection = self.connect().await?;
        let shared_calls = &self.shared.shared_calls;
        let _shared = self
            .gate
            .acquire_shared_call(shared_calls)
            .await
            .map_err(|err| self.queue_error(err))?;
        if let UpstreamRequest::Tool { requested_name, tool, .. } = &request {
            self.wait_for_current_list(&connection).await?;
            if !self.is_still_current(&connection, requested_name, tool) {
                return Err(UpstreamError::Outdated);
            }
        }
        attempt.sent = Some(Instant::now());
        self.counts.count_call();
        let guard = connection.register_caller(self.name(), caller);
        let on_progress = caller.follow_call();
        let (timeouts, watchers) = (self.call_timeouts(), (on_progress, guard.as_ref()));
        let called = match request {
            UpstreamRequest::Tool { params, meta, .. } => {
                connection.call(params, meta, timeouts, watchers).await
            }
            UpstreamRequest::Other { method, params, meta } => {
                let request = CustomRequest::new(method, Some(params));
                let request = ClientRequest::CustomRequest(request);
                connection.ask(request, meta, timeouts, watchers).await
            }
        };
        attempt.finish(&called);
        called
    }

    fn call_timeouts(&self) -> CallTimeouts {
        let idle = self.config.narrow.call_timeout.unwrap_or(self.shared.settings.call_timeout);
        CallTimeouts { idle, total: self.shared.settings.call_total_timeout.max(idle) }
    }

    pub(super) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn breaker_error(&self, refusal: BreakerRefusal) -> UpstreamError {
        self.counts.count_refusal();
        let reason = || self.counts.last_error().unwrap_or_else(|| "no answer".to_owned());
        match refusal {
            BreakerRefusal::Open { left } => UpstreamError::BreakerOpen {
                failures: breaker::FAILURES,
                reason: reason(),
                retry_s: round_up_seconds(left),
            },
            BreakerRefusal::Probing => {
                UpstreamError::BreakerProbing { reason: reason(), retry_s: 1 }
            }
            BreakerRefusal::Backoff { left } => UpstreamError::Busy { retry_after: left },
        }
    }

    /// Estimates the wait from the length of the queue and the mean latency.
    fn queue_error(&self, refusal: QueueRefusal) -> UpstreamError {
        self.counts.count_refusal();
        let QueueRefusal { size, waiting, waited } = refusal;
        let rounds = u32::try_from((waiting + 1).div_ceil(size)).unwrap_or(u32::MAX);
        let expected = self.counts.latency().mean().saturating_mul(rounds);
        let retry_s = round_up_seconds(expected.min(self.shared.settings.queue_wait));
        match waited {
            Some(waited) => UpstreamError::QueueTimeout {
                under_way: size,
                waited_s: round_up_seconds(waited),
                retry_s,
            },
            None => UpstreamError::QueueFull { under_way: size, waiting, retry_s },
        }
    }
}

impl CallAttempt<'_> {
    fn finish(&mut self, called: &Result<Value, UpstreamError>) {
        let took = self.sent.map(|sent| sent.elapsed()).unwrap_or_default();
        let verdict = match called {
            Ok(_) => CallVerdict::Answered,
            Err(error) => error.verdict(),
        };
        match (verdict, called) {
            (CallVerdict::Failed, Err(error)) => self.upstream.counts.count_failure(error),
            (CallVerdict::Answered, _) => self.upstream.counts.count_answer(took),
            (CallVerdict::Failed | CallVerdict::Busy(_) | CallVerdict::Unknown, _) => {}
        }
        self.record(verdict);
    }

    fn record(&mut self, verdict: CallVerdict) {
        self.is_over = true;
        self.upstream.breaker().record(&self.pass, verdict, Instant::now());
    }
}

/// THREAT[UP-10]: a call given up by its own caller says nothing about the server, however long it
/// took. Otherwise one impatient guest would open the breaker for everybody. A server that answers
/// nobody is detected by calls that reach the server's own timeout.
impl Drop for CallAttempt<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.record(CallVerdict::Unknown);
        }
    }
}
