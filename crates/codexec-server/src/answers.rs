//! Answers the asks of running code. Each tool call is recorded before it goes out.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use codexec_functions::OwnFunction;
use codexec_gateway::Gateway;
use codexec_store::{CallEnd, CallStart, Store};
use codexec_types::{Admitted, Ask, AskAnswer, CallCode, CallError, ExecutionId, Json, Outcome};
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::allowance::Allowance;
use crate::denial::{self, RequestWords};
use crate::discovery::{
    DiscoveryContext, DiscoveryRules, ReportedCall, SearchWords, explain_denied, name_call,
};
use crate::outer_execution::SessionScope;
use crate::own::OwnFunctionError;
use crate::sessions::{RecordedCell, Replay};
use crate::{App, Client};

/// Maximum bytes of a call's arguments in its record.
const MAX_RECORDED_ARGS: usize = 64 << 10;

/// Answers the asks of one execution.
pub(crate) struct Answers<'a> {
    app: &'a App,
    store: &'a Store,
    id: &'a ExecutionId,
    admitted: &'a Admitted,
    /// The client, making requests from inside the execution.
    client: &'a Client,
    gateway: Gateway,
    replayed: Option<Arc<Replay>>,
    words: RequestWords,
    calls: AtomicU32,
    received_bytes: AtomicU64,
    recorded: Mutex<Option<RecordedCell>>,
    /// Serializes the own functions that run no code.
    own_function_lock: Semaphore,
    allowance: Arc<Allowance>,
    begun: Instant,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(
        app: &'a App,
        store: &'a Store,
        id: &'a ExecutionId,
        admitted: &'a Admitted,
        client: &'a Client,
        replayed: Option<Arc<Replay>>,
    ) -> Answers<'a> {
        let is_in_session = matches!(client.scope(), Some(SessionScope::Session(_)));
        let recorded = is_in_session.then(|| {
            let (code, input) = (admitted.code().to_owned(), admitted.input().clone());
            RecordedCell::new(code, input, admitted.args().to_vec())
        });
        Answers {
            app,
            store,
            id,
            admitted,
            client,
            gateway: app.gateway.on_behalf_of(client.caller.clone()),
            replayed,
            words: RequestWords::default(),
            calls: AtomicU32::new(0),
            received_bytes: AtomicU64::new(0),
            recorded: Mutex::new(recorded),
            own_function_lock: Semaphore::new(1),
            allowance: client
                .outer
                .as_ref()
                .map_or_else(Arc::default, |outer| Arc::clone(&outer.allowance)),
            begun: Instant::now(),
        }
    }

    /// Sets the words for errors of calls that the code may not make.
    pub(crate) fn with_words(self, words: RequestWords) -> Self {
        Answers { words, ..self }
    }

    pub(crate) async fn answer(&self, id: u32, ask: Ask) -> AskAnswer {
        let then = self.is_recorded().then(|| ask.clone());
        let result = match &self.replayed {
            Some(replay) => replay.answer(&ask),
            None => self.resolve(ask).await,
        };
        if let (Some(ask), Some(cell)) = (then, &mut *self.cell()) {
            cell.push(ask, result.clone());
        }
        AskAnswer { id, result }
    }

    /// Returns the cell for replay, if it succeeded.
    pub(crate) fn take_recorded_cell(&self, outcome: &Outcome) -> Option<RecordedCell> {
        match outcome {
            Outcome::Returned(_) => self.cell().take(),
            Outcome::Threw(_)
            | Outcome::Exited { .. }
            | Outcome::Stopped(_)
            | Outcome::Crashed(_)
            | Outcome::Cancelled => None,
        }
    }

    /// Returns what the answers to searches left out, one sentence each.
    pub(crate) fn take_discovery_notes(&self) -> Vec<String> {
        self.gateway.take_notes()
    }

    /// Returns the length of all results of tools so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    /// Returns the client, making requests from inside the execution.
    pub(crate) fn client(&self) -> &Client {
        self.client
    }

    /// Returns the scope that owns the sessions which the code opens.
    pub(crate) fn scope(&self) -> Option<&SessionScope> {
        self.client.scope()
    }

    /// Abandons pending asks and stops what the code started, after the execution has ended.
    pub(crate) fn end(&self) {
        self.client.cancel.cancel();
    }

    /// Ends pending calls of own functions. If `closing` is cancelled, the session of the code is
    /// being closed, and the sessions that the code opened are closed at once.
    pub(crate) async fn wind_up<F: Future>(
        &self,
        closing: &CancellationToken,
        asks: FuturesUnordered<F>,
    ) {
        let Some(outer) = &self.client.outer else { return };
        if matches!(outer.scope, SessionScope::Execution(_)) || closing.is_cancelled() {
            self.app.sessions.close_opened_by(&outer.scope);
        }
        outer.wind_up(&self.client.cancel, asks).await;
    }

    async fn resolve(&self, ask: Ask) -> Result<Json, CallError> {
        let ask = match ask {
            // Own functions end by themselves with the execution, and record how they ended.
            Ask::Own { name, args } => return self.call_own_function(&name, args).await,
            ask => ask,
        };
        let given_up = || {
            let message = "the execution ended before this was answered";
            Err(CallError::new(CallCode::UpstreamError, message))
        };
        let answer = self.client.cancel.run_until_cancelled(self.answer_by_gateway(ask)).await;
        answer.unwrap_or_else(given_up)
    }

    async fn answer_by_gateway(&self, ask: Ask) -> Result<Json, CallError> {
        match (ask, self.discovery()) {
            (ask, Some(discovery)) => self.answer_by_discovery(discovery, ask).await,
            (ask, None) if ask.is_tool_call() => self.call_upstream(ask).await,
            (ask, None) => self.ask_gateway(ask).await,
        }
    }

    fn discovery(&self) -> Option<&DiscoveryRules> {
        self.client.outer.as_ref()?.discovery.as_deref()
    }

    /// Answers searches by the rules of discovery, and calls tools in the usual way.
    async fn answer_by_discovery(
        &self,
        discovery: &DiscoveryRules,
        ask: Ask,
    ) -> Result<Json, CallError> {
        let Some(words) = SearchWords::of(&ask) else {
            return self.call_by_rules(discovery, ask).await;
        };
        let by = DiscoveryContext {
            store: self.store,
            id: self.id,
            client: self.client,
            language: self.admitted.language(),
            reach: self.admitted.reach(),
            after: self.begun.elapsed(),
        };
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        discovery.answer(by, &self.gateway, (ask, words), number).await
    }

    /// Calls a tool, if the client has not made too many calls, and reports the call.
    async fn call_by_rules(&self, rules: &DiscoveryRules, ask: Ask) -> Result<Json, CallError> {
        let (begun, (server, tool)) = (Instant::now(), name_call(&ask));
        let result = match rules.count_call(self.client.identity()) {
            Ok(()) => {
                let explain = |error| explain_denied(error, self.admitted.reach());
                self.call_upstream(ask).await.map_err(explain)
            }
            Err(refused) if !refused.is_first => return Err(refused.error),
            Err(refused) => Err(refused.error),
        };
        let error = result.as_ref().err().map(|error| call_code_name(error.code));
        let (execution, client) = (self.id.clone(), self.client.name());
        let duration = begun.elapsed();
        rules
            .report_call(|| ReportedCall { execution, client, server, tool, error, duration })
            .await;
        result
    }

    async fn ask_gateway(&self, ask: Ask) -> Result<Json, CallError> {
        let reach = self.admitted.reach();
        let allowed = if ask.is_tool_call() { reach.callable() } else { reach.visible() };
        let answer = self.gateway.answer(ask, allowed, self.admitted.language()).await;
        answer.map_err(|error| self.explain(error))
    }

    /// THREAT[LOG-2]: no call goes out without a record.
    async fn call_upstream(&self, ask: Ask) -> Result<Json, CallError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let (server, tool, args) = describe_call(&ask);
        // Every call is recorded; its arguments only as far as the allowance permits.
        let kept_bytes = match self.allowance.take(args.len().min(MAX_RECORDED_ARGS) as u64) {
            Ok(()) => MAX_RECORDED_ARGS,
            Err(_) => 0,
        };
        let after = self.begun.elapsed();
        let call = CallStart { server, tool, args, kept_bytes, after };
        if let Err(error) = self.store.begin_call(self.id, number, &call).await {
            let message = format!("the call was not made, because it cannot be recorded: {error}");
            return Err(CallError::new(CallCode::UpstreamError, message));
        }
        let begun = Instant::now();
        let result = self.ask_gateway(ask).await;
        let result_bytes = result.as_ref().map_or(0, |json| json.text().len() as u64);
        self.received_bytes.fetch_add(result_bytes, Ordering::Relaxed);
        let end = CallEnd {
            error: result.as_ref().err().map(|error| (call_code_name(error.code), &*error.message)),
            duration: begun.elapsed(),
            result_bytes,
        };
        self.store.finish_call(self.id, number, end).await;
        result
    }

    /// Calls one of codexec's own functions. In tool filters they belong to a server called
    /// `codexec`.
    async fn call_own_function(&self, name: &str, args: Json) -> Result<Json, CallError> {
        let about = |error: CallError| error.about("codexec", name);
        let refused = |code, message: String| about(CallError::new(code, message));
        if self.admitted.reach().callable().check("codexec", name).is_err() {
            let message = format!("codexec.{name} is not allowed here");
            return Err(self.explain(refused(CallCode::ToolNotAllowed, message)));
        }
        let function = OwnFunction::from_name(name).ok_or_else(|| {
            let error = OwnFunctionError::unknown(name);
            refused(error.call_code(), error.to_string())
        })?;
        let runs_code = function.spec().runs_code;
        // THREAT[ORD-3]: functions that only read and write run one at a time for each execution.
        let guard = if runs_code { None } else { self.own_function_lock.acquire().await.ok() };
        let is_saved = function == OwnFunction::SaveScript;
        // A saved script is stored twice.
        let stored_copies = if is_saved { 2 } else { u64::from(runs_code) };
        if stored_copies > 0 {
            let bytes = args.text().len() as u64;
            self.allowance.take(stored_copies * bytes).map_err(about)?;
        }
        let Ok(Some(Value::Object(values))) = self.gateway.parse_json(&args).await else {
            return Err(refused(
                CallCode::InvalidArgs,
                "the arguments must be an object".to_owned(),
            ));
        };
        drop(args);
        let done = self.app.call_own_function(function, values, self.client).await;
        drop(guard);
        match done {
            Ok(owned) => self.gateway.write_json(owned.value).await.map_err(about),
            Err(error) => Err(refused(error.call_code(), error.to_string())),
        }
    }

    /// Says in the error of a call that the code may not make what to ask for.
    fn explain(&self, error: CallError) -> CallError {
        let policy = self.client.connection.policy();
        let servers = self.gateway.server_names();
        denial::explain_denied(error, self.admitted, &policy, self.words, &servers)
    }

    fn is_recorded(&self) -> bool {
        self.cell().as_ref().is_some_and(RecordedCell::has_room)
    }

    fn cell(&self) -> std::sync::MutexGuard<'_, Option<RecordedCell>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns server, tool and arguments for the record of a call.
pub(crate) fn describe_call(ask: &Ask) -> (&str, &str, &str) {
    match ask {
        Ask::Tool { server, tool, args } => (server, tool, args.text()),
        Ask::Named { name, args } => ("", name, args.text()),
        Ask::ReadResource { server, uri } => (server, "resources/read", uri),
        Ask::Prompt { server, name, args: _ } => (server, "prompts/get", name),
        Ask::Resources { server } => (server.as_deref().unwrap_or(""), "resources/list", ""),
        Ask::ResourceTemplates { server } => {
            (server.as_deref().unwrap_or(""), "resources/templates/list", "")
        }
        Ask::Prompts { server } => (server.as_deref().unwrap_or(""), "prompts/list", ""),
        Ask::ToolNames { server } => (server, "tools/list", ""),
        Ask::Servers {}
        | Ask::Discover { .. }
        | Ask::Search { .. }
        | Ask::Schema { .. }
        | Ask::Help { .. }
        | Ask::Own { .. } => ("", "", ""),
    }
}

pub(crate) fn call_code_name(code: CallCode) -> &'static str {
    match code {
        CallCode::InvalidArgs => "INVALID_ARGS",
        CallCode::ServerNotAllowed => "SERVER_NOT_ALLOWED",
        CallCode::ToolNotAllowed => "TOOL_NOT_ALLOWED",
        CallCode::ToolNotFound => "TOOL_NOT_FOUND",
        CallCode::ToolQuarantined => "TOOL_QUARANTINED",
        CallCode::UpstreamError => "UPSTREAM_ERROR",
        CallCode::CircuitOpen => "CIRCUIT_OPEN",
        CallCode::ServiceUnavailable => "SERVICE_UNAVAILABLE",
        CallCode::RateLimited => "RATE_LIMITED",
    }
}
