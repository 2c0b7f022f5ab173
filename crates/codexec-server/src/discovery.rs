//! Discovery rules of `code-executor`: code sees every tool, whatever it may call, and is limited
//! in how often, how long and with which words it may search.

mod calls;
mod rate_limit;
mod rules;
mod tool_answers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use codexec_gateway::Gateway;
use codexec_store::{CallEnd, CallStart, Store, mask};
use codexec_types::{Ask, CallCode, CallError, ExecutionId, Json, Language, Reach};
use futures::future::BoxFuture;
use serde_json::{Value, json};

pub use self::calls::ReportedCall;
pub(crate) use self::calls::name_call;
pub(crate) use self::rate_limit::DiscoveryRateLimit;
use crate::{Client, Connection};

/// Timeout of a discovery.
const DISCOVERY_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a discovery waits for a server that it names. Shorter, so that the answer is in time.
const SERVER_TIMEOUT: Duration = Duration::from_millis(250);

/// The rules for searches of an execution: how often they are answered, and who is told of them.
/// The visible tools are in the execution's [`Reach`].
pub struct DiscoveryRules {
    limit: Arc<DiscoveryRateLimit>,
    call_limit: Arc<DiscoveryRateLimit>,
    /// The maximum number of discoveries of one client in a minute, and that of its calls.
    max_requests: usize,
    observers: RequestObservers,
}

/// A function that is told of requests, e.g. for an audit log, before the code gets the result.
pub type RequestObserver<T> = Arc<dyn Fn(T) -> BoxFuture<'static, ()> + Send + Sync>;

/// The functions that are told of requests.
#[derive(Clone, Default)]
pub struct RequestObservers {
    pub discovery: Option<RequestObserver<FinishedDiscovery>>,
    pub call: Option<RequestObserver<ReportedCall>>,
}

/// A discovery that was answered or refused.
pub struct FinishedDiscovery {
    pub execution: ExecutionId,
    /// The client's name for records.
    pub client: String,
    /// The function that the code called.
    pub function: &'static str,
    /// The search words, shortened and masked.
    pub search_terms: Value,
    /// The number of tools in the result.
    pub results: usize,
    pub error: Option<String>,
    pub duration: Duration,
}

/// The execution that searches.
#[derive(Clone, Copy)]
pub(crate) struct DiscoveryContext<'a> {
    pub(crate) store: &'a Store,
    pub(crate) id: &'a ExecutionId,
    pub(crate) client: &'a Client,
    pub(crate) language: Language,
    pub(crate) reach: &'a Reach,
    /// The time since the start of the execution.
    pub(crate) after: Duration,
}

/// The search words of one discovery, for the record.
pub(crate) struct SearchWords {
    /// The function that the code called.
    pub(crate) function: &'static str,
    pub(crate) terms: Vec<String>,
}

/// The server name of discoveries in records. No server of the user can have it.
pub const DISCOVERY_SERVER: &str = "codexec";

impl SearchWords {
    /// Returns `None` if the ask is not a discovery.
    pub(crate) fn of(ask: &Ask) -> Option<SearchWords> {
        let (function, terms) = match ask {
            Ask::Discover { words } => ("discoverMCPTools", words.clone()),
            Ask::Search { query, .. } => ("searchTools", vec![query.clone()]),
            Ask::Schema { name } => ("getToolSchema", vec![name.clone()]),
            Ask::Help { name } => ("help", name.iter().cloned().collect()),
            Ask::ToolNames { server } => ("listTools", vec![server.clone()]),
            Ask::Servers {} => ("listServers", Vec::new()),
            Ask::Tool { .. }
            | Ask::Named { .. }
            | Ask::Resources { .. }
            | Ask::ResourceTemplates { .. }
            | Ask::ReadResource { .. }
            | Ask::Prompts { .. }
            | Ask::Prompt { .. }
            | Ask::Own { .. } => return None,
        };
        Some(SearchWords { function, terms })
    }

    fn shortened(&self) -> Value {
        let brief = |term: &String| {
            mask(&term.chars().take(rules::MAX_CHARS).collect::<String>()).into_owned()
        };
        self.terms.iter().take(rules::MAX_WORDS).map(brief).collect()
    }
}

impl DiscoveryRules {
    /// Creates the rules for requests of a connection, which share its counts.
    pub fn new(
        connection: &Connection,
        max_requests: usize,
        observers: RequestObservers,
    ) -> DiscoveryRules {
        let (limit, call_limit) = connection.request_limits();
        DiscoveryRules { limit, call_limit, max_requests, observers }
    }

    /// Counts, checks and answers a discovery, and records it whatever the result.
    pub(crate) async fn answer(
        &self,
        by: DiscoveryContext<'_>,
        gateway: &Gateway,
        (ask, words): (Ask, SearchWords),
        number: u32,
    ) -> Result<Json, CallError> {
        let begun = Instant::now();
        let counted = self.limit.count(by.client.identity(), self.max_requests, begun);
        if let Err(rate_limited) = &counted
            && !rate_limited.is_first
        {
            return Err(self.rate_limit_error(rate_limited.wait));
        }
        let args = json!({"searchTerms": words.shortened()}).to_string();
        let kept_bytes = args.len();
        let call = CallStart {
            server: DISCOVERY_SERVER,
            tool: words.function,
            args: &args,
            kept_bytes,
            after: by.after,
        };
        if let Err(error) = by.store.begin_call(by.id, number, &call).await {
            let message =
                format!("the search was not made, because it cannot be recorded: {error}");
            return Err(CallError::new(CallCode::UpstreamError, message));
        }
        let result = match (counted, rules::check(&ask)) {
            (Err(rate_limited), _) => Err(self.rate_limit_error(rate_limited.wait)),
            (Ok(()), Err(error)) => Err(error),
            (Ok(()), Ok(())) => search(by, gateway, ask).await,
        };
        let error = result.as_ref().err();
        let end = CallEnd {
            error: error.map(|error| (crate::answers::call_code_name(error.code), &*error.message)),
            duration: begun.elapsed(),
            result_bytes: result.as_ref().map_or(0, |json| json.text().len() as u64),
        };
        by.store.finish_call(by.id, number, end).await;
        if let Some(on_finished) = &self.observers.discovery {
            on_finished(FinishedDiscovery {
                execution: by.id.clone(),
                client: by.client.name(),
                function: words.function,
                search_terms: words.shortened(),
                results: result.as_ref().map_or(0, tool_answers::count),
                error: error.map(|error| error.message.clone()),
                duration: begun.elapsed(),
            })
            .await;
        }
        result
    }

    fn rate_limit_error(&self, wait: Duration) -> CallError {
        calls::rate_limit_error("discovery requests", self.max_requests, wait)
    }
}

/// Rewrites a permission error so that it says how to call the tool, by the name that was shown.
pub(crate) fn explain_denied(mut error: CallError, reach: &Reach) -> CallError {
    let is_denied = matches!(error.code, CallCode::ServerNotAllowed | CallCode::ToolNotAllowed);
    let (true, Some(server), Some(tool)) = (is_denied, &error.server, &error.tool) else {
        return error;
    };
    let name = format!("mcp__{server}__{tool}");
    error.message = match reach.visible().check(server, tool) {
        Err(_) => format!("tool \"{name}\" is not allowed by the settings of codexec"),
        Ok(()) => format!("tool \"{name}\" is not in allowedTools; add it to call it"),
    };
    error
}

async fn search(by: DiscoveryContext<'_>, gateway: &Gateway, ask: Ask) -> Result<Json, CallError> {
    let hurried = gateway.with_list_wait(SERVER_TIMEOUT);
    let finding = tool_answers::answer(&hurried, ask, by.reach.visible(), by.language);
    let found = tokio::time::timeout(DISCOVERY_TIMEOUT, finding).await;
    found.unwrap_or_else(|_| Err(timeout_error()))
}

fn timeout_error() -> CallError {
    let message = format!(
        "Discovery timeout ({} ms exceeded). The machine is busy; try again in a few seconds",
        DISCOVERY_TIMEOUT.as_millis()
    );
    CallError::new(CallCode::UpstreamError, message)
}
