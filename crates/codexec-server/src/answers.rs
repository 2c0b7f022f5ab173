//! What code asks while it runs: each call written down before it goes out, and answered by
//! whoever it is for.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use codexec_gateway::Gateway;
use codexec_store::{CallEnd, Store, ToolCall};
use codexec_types::{Admitted, Answer, Ask, CallCode, CallError, ExecutionId, Json, Outcome};
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::allowance::Allowance;
use crate::discovery::{Asking, Discovery, Words};
use crate::inside::Scope;
use crate::sessions::{Recorded, Replay};
use crate::{App, Client, own};

/// Of a call's arguments, so much is kept in its record while there is room.
const MAX_KEPT_ARGS: usize = 64 << 10;

pub(crate) struct Answers<'a> {
    app: &'a App,
    store: &'a Store,
    id: &'a ExecutionId,
    admitted: &'a Admitted,
    /// The one who stands behind the code, asking from inside of it.
    client: &'a Client,
    gateway: Gateway,
    replayed: Option<Arc<Replay>>,
    calls: AtomicU32,
    recorded: Mutex<Option<Recorded>>,
    /// Whose turn it is among the own functions that run no code.
    own_turn: Semaphore,
    allowance: Arc<Allowance>,
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
        let is_in_session = matches!(client.scope(), Some(Scope::Session(_)));
        let recorded = is_in_session.then(|| {
            let (code, input) = (admitted.code().to_owned(), admitted.input().clone());
            Recorded::new(code, input, admitted.args().to_vec())
        });
        Answers {
            app,
            store,
            id,
            admitted,
            client,
            gateway: app.gateway.on_behalf_of(client.caller.clone()),
            replayed,
            calls: AtomicU32::new(0),
            recorded: Mutex::new(recorded),
            own_turn: Semaphore::new(1),
            allowance: client
                .inside
                .as_ref()
                .map_or_else(Arc::default, |inside| Arc::clone(&inside.allowance)),
        }
    }

    pub(crate) async fn answer(&self, id: u32, ask: Ask) -> Answer {
        let then = self.is_recorded().then(|| ask.clone());
        let result = match &self.replayed {
            Some(replay) => replay.answer(&ask),
            None => self.found(ask).await,
        };
        if let (Some(ask), Some(cell)) = (then, &mut *self.cell()) {
            cell.push(ask, result.clone());
        }
        Answer { id, result }
    }

    /// The cell as it can be run again, if it has succeeded.
    pub(crate) fn recorded(&self, outcome: &Outcome) -> Option<Recorded> {
        match outcome {
            Outcome::Returned(_) => self.cell().take(),
            Outcome::Threw(_)
            | Outcome::Exited { .. }
            | Outcome::Stopped(_)
            | Outcome::Crashed(_)
            | Outcome::Cancelled => None,
        }
    }

    /// What sessions that the code opens belong to.
    pub(crate) fn scope(&self) -> Option<&Scope> {
        self.client.scope()
    }

    /// The execution has ended: what its code asked for is given up, what it started is stopped.
    pub(crate) fn end(&self) {
        self.client.cancel.cancel();
    }

    /// Ends what the code has asked of us and what has not ended with it. `closing` is called when
    /// its session is closed, and then the sessions that it opened go at once.
    pub(crate) async fn wind_up<F: Future>(
        &self,
        closing: &CancellationToken,
        asks: FuturesUnordered<F>,
    ) {
        let Some(inside) = &self.client.inside else { return };
        if matches!(inside.scope, Scope::Execution(_)) || closing.is_cancelled() {
            self.app.sessions.close_opened_by(&inside.scope);
        }
        inside.wind_up(&self.client.cancel, asks).await;
    }

    async fn found(&self, ask: Ask) -> Result<Json, CallError> {
        let ask = match ask {
            // Ends by itself when the execution does, and writes down how.
            Ask::Own { name, args } => return self.own(&name, args).await,
            ask => ask,
        };
        let given_up = || {
            let message = "the execution ended before this was answered";
            Err(CallError::new(CallCode::UpstreamError, message))
        };
        let answer = self.client.cancel.run_until_cancelled(self.found_elsewhere(ask)).await;
        answer.unwrap_or_else(given_up)
    }

    async fn found_elsewhere(&self, ask: Ask) -> Result<Json, CallError> {
        match (ask, self.discovery()) {
            (ask, Some(discovery)) => self.discovered(discovery, ask).await,
            (ask, None) if ask.is_tool_call() => self.called(ask).await,
            (ask, None) => self.asked(ask).await,
        }
    }

    fn discovery(&self) -> Option<&Discovery> {
        self.client.inside.as_ref()?.discovery.as_deref()
    }

    /// By rules of its own; what is called is called by the usual ones.
    async fn discovered(&self, discovery: &Discovery, ask: Ask) -> Result<Json, CallError> {
        let Some(words) = Words::of(&ask) else {
            return self.called(ask).await.map_err(|error| discovery.in_their_words(error));
        };
        let by = Asking {
            app: self.app,
            store: self.store,
            id: self.id,
            client: self.client,
            language: self.admitted.language(),
        };
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        discovery.answer(by, &self.gateway, (ask, words), number).await
    }

    async fn asked(&self, ask: Ask) -> Result<Json, CallError> {
        let allowed = if ask.is_tool_call() { self.admitted.tools() } else { self.admitted.seen() };
        self.gateway.answer(ask, allowed, self.admitted.language()).await
    }

    /// THREAT[LOG-2]: no call goes out that is not written down.
    async fn called(&self, ask: Ask) -> Result<Json, CallError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let (server, tool, args) = named(&ask);
        // A call is written down in any case, its arguments as far as there is room for them.
        let kept_bytes = match self.allowance.take(args.len().min(MAX_KEPT_ARGS) as u64) {
            Ok(()) => MAX_KEPT_ARGS,
            Err(_) => 0,
        };
        let call = ToolCall { server, tool, args, kept_bytes };
        if let Err(error) = self.store.begin_call(self.id, number, &call).await {
            let message = format!("the call cannot be written down, so it is not made: {error}");
            return Err(CallError::new(CallCode::UpstreamError, message));
        }
        let begun = Instant::now();
        let result = self.asked(ask).await;
        let end = CallEnd {
            error: result.as_ref().err().map(|error| (code_name(error.code), &*error.message)),
            duration: begun.elapsed(),
            // What a session needs of it, it keeps itself.
            result: None,
            result_bytes: result.as_ref().map_or(0, |json| json.text().len() as u64),
        };
        self.store.finish_call(self.id, number, end).await;
        result
    }

    /// Our own functions are tools of a server called `codexec` to whoever narrows tools.
    async fn own(&self, name: &str, args: Json) -> Result<Json, CallError> {
        let about = |error: CallError| error.about("codexec", name);
        let refused = |code, message: String| about(CallError::new(code, message));
        if self.admitted.tools().check("codexec", name).is_err() {
            let message = format!(
                "codexec.{name} is not allowed here; add \"codexec.{name}\" or \"codexec.*\" to \
                 allowed_tools"
            );
            return Err(refused(CallCode::ToolNotAllowed, message));
        }
        let runs_code = own::RUN_CODE.contains(&name);
        // THREAT[ORD-3]: what only reads and writes is done one after the other for each execution.
        let turn = if runs_code { None } else { self.own_turn.acquire().await.ok() };
        let kept = args.text().len() as u64;
        match name {
            _ if runs_code => self.allowance.take(kept).map_err(about)?,
            // A saved text stands there twice.
            "save_script" => self.allowance.take(2 * kept).map_err(about)?,
            _ => {}
        }
        let Ok(Some(Value::Object(values))) = self.gateway.parse(&args).await else {
            return Err(refused(CallCode::InvalidArgs, "the arguments are no object".to_owned()));
        };
        drop(args);
        let done = self.app.own(name, values, self.client).await;
        drop(turn);
        match done {
            Ok(owned) => self.gateway.write_json(owned.value).await.map_err(about),
            Err(error) => Err(refused(error.call_code(), error.to_string())),
        }
    }

    fn is_recorded(&self) -> bool {
        self.cell().as_ref().is_some_and(Recorded::has_room)
    }

    fn cell(&self) -> std::sync::MutexGuard<'_, Option<Recorded>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a record names it: server, tool, arguments.
fn named(ask: &Ask) -> (&str, &str, &str) {
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

pub(crate) fn code_name(code: CallCode) -> &'static str {
    match code {
        CallCode::InvalidArgs => "INVALID_ARGS",
        CallCode::ServerNotAllowed => "SERVER_NOT_ALLOWED",
        CallCode::ToolNotAllowed => "TOOL_NOT_ALLOWED",
        CallCode::ToolNotFound => "TOOL_NOT_FOUND",
        CallCode::ToolQuarantined => "TOOL_QUARANTINED",
        CallCode::UpstreamError => "UPSTREAM_ERROR",
    }
}
