//! The state of each token in use: its scope, its rate, its connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use codexec_server::mcp::{DirectTools, McpEndpoint, Toolsets};
use codexec_server::{App, Connection, LivePolicy, TextBudget, TokenScope};
use codexec_types::{Edge, Identity, Principal, ServerName};
use tokio_util::sync::CancellationToken;

use crate::edge::ToolsetSource;
use crate::error::HttpError;
use crate::rate_limit::RateLimit;
use crate::tokens::TokenRecord;

/// The parts of the server that every caller's connection is made of.
pub(crate) struct CallerParts {
    pub(crate) app: Arc<App>,
    pub(crate) policy: Arc<LivePolicy>,
    pub(crate) budget: TextBudget,
    pub(crate) toolsets: ToolsetSource,
    pub(crate) requests_per_minute: u32,
    /// Ends all streams and sessions.
    pub(crate) stop: CancellationToken,
}

/// The holder of one token.
pub(crate) struct TokenHolder {
    record: TokenRecord,
    scope: TokenScope,
    pub(crate) rate: RateLimit,
    endpoints: Mutex<HashMap<EndpointKey, Arc<CallerEndpoint>>>,
    stop: CancellationToken,
}

/// What a path of MCP leads to.
#[derive(Clone, PartialEq, Eq, Hash)]
enum EndpointKey {
    /// The names of toolsets, in their fixed order.
    Toolsets(Vec<&'static str>),
    /// One of the user's servers, passed through.
    Server(ServerName),
}

/// The connection of one caller for one set of toolsets, and its MCP endpoint.
pub(crate) struct CallerEndpoint {
    pub(crate) connection: Arc<Connection>,
    pub(crate) mcp: McpEndpoint,
}

/// The callers by the name of their token.
#[derive(Default)]
pub(crate) struct TokenHolders(Mutex<HashMap<String, Arc<TokenHolder>>>);

impl TokenHolders {
    /// Returns the caller with this token. Forgets callers whose tokens are no longer valid, and
    /// stops what they run.
    pub(crate) fn get(
        &self,
        record: &TokenRecord,
        valid: &[TokenRecord],
        parts: &CallerParts,
    ) -> Result<Arc<TokenHolder>, HttpError> {
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now();
        callers.retain(|_, caller| {
            let is_valid = valid.contains(&caller.record) && !caller.record.is_expired(now);
            if !is_valid {
                caller.end();
            }
            is_valid
        });
        if let Some(caller) = callers.get(record.name.as_str()) {
            return Ok(Arc::clone(caller));
        }
        let scope = record.scope().map_err(|_| HttpError::NoToken)?;
        let rate = scope.requests_per_minute().unwrap_or(parts.requests_per_minute);
        let rate = rate.min(parts.requests_per_minute);
        let caller = Arc::new(TokenHolder {
            record: record.clone(),
            scope,
            rate: RateLimit::new(rate, Instant::now()),
            endpoints: Mutex::default(),
            stop: parts.stop.child_token(),
        });
        callers.insert(record.name.as_str().to_owned(), Arc::clone(&caller));
        Ok(caller)
    }
}

impl TokenHolder {
    /// Returns the endpoint of these toolsets; `None` are those that the server offers by default.
    pub(crate) fn endpoint(
        &self,
        toolsets: Option<&str>,
        parts: &CallerParts,
    ) -> Result<Arc<CallerEndpoint>, HttpError> {
        let (names, joined) = (parts.toolsets)(toolsets).ok_or(HttpError::NotFound)?;
        let denied = names.iter().find(|name| !self.scope.allows_toolset(name));
        let (names, joined) = match (denied, toolsets, self.scope.toolsets()) {
            (None, _, _) => (names, joined),
            // A client that names no toolset gets those of its token.
            (Some(_), None, Some(own)) => {
                (parts.toolsets)(Some(&own.join(","))).ok_or(HttpError::NotFound)?
            }
            (Some(denied), _, _) => return Err(HttpError::Scope(format!("toolset:{denied}"))),
        };
        Ok(self.get_or_make(EndpointKey::Toolsets(names), joined, parts))
    }

    /// Returns the endpoint of one server. A token needs the toolset `direct` for it.
    ///
    /// THREAT[HTTP-4]: a token does not learn whether there is a server that it may not use.
    pub(crate) fn server_endpoint(
        &self,
        server: &str,
        parts: &CallerParts,
    ) -> Result<Arc<CallerEndpoint>, HttpError> {
        let direct = DirectTools::NAME;
        if !self.scope.allows_toolset(direct) {
            return Err(HttpError::Scope(format!("toolset:{direct}")));
        }
        let server = ServerName::new(server).map_err(|_| HttpError::NotFound)?;
        let is_configured = parts.app.gateway.server_names().contains(&server);
        let policy = self.scope.narrow(&parts.policy.get());
        if !is_configured || !policy.tools.allows_server(server.as_str()) {
            return Err(HttpError::NotFound);
        }
        let (_, joined) = (parts.toolsets)(Some(direct)).ok_or(HttpError::NotFound)?;
        Ok(self.get_or_make(EndpointKey::Server(server), joined, parts))
    }

    fn get_or_make(
        &self,
        key: EndpointKey,
        toolsets: Toolsets,
        parts: &CallerParts,
    ) -> Arc<CallerEndpoint> {
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = endpoints.get(&key) {
            return Arc::clone(endpoint);
        }
        let identity = Identity::Token(self.record.name.clone());
        let principal = Principal::new(identity, Edge::Http);
        let connection = Connection::new(principal, toolsets, Arc::clone(&parts.policy))
            .with_budget(parts.budget)
            .with_scope(self.scope.clone());
        let connection = Arc::new(connection);
        let (app, stop) = (Arc::clone(&parts.app), self.stop.child_token());
        let mcp = match &key {
            EndpointKey::Toolsets(_) => {
                // Searches answer with what is known, so begin to know.
                app.gateway.start_unlisted(&connection.policy().tools);
                McpEndpoint::new(app, Arc::clone(&connection), stop)
            }
            EndpointKey::Server(server) => {
                McpEndpoint::relay(app, Arc::clone(&connection), server.clone(), stop)
            }
        };
        let endpoint = Arc::new(CallerEndpoint { connection, mcp });
        endpoints.insert(key, Arc::clone(&endpoint));
        endpoint
    }

    /// Returns the token that ends the streams of the caller.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Stops everything that the caller runs.
    fn end(&self) {
        self.stop.cancel();
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        for endpoint in endpoints.values() {
            endpoint.connection.stop_executions();
        }
    }
}
