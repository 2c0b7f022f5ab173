//! The settings of one connection.

use std::sync::Arc;

use codexec_store::ReadScope;
use codexec_types::{Identity, Policy, Principal};
use tokio_util::sync::CancellationToken;

use crate::discovery::DiscoveryRateLimit;
use crate::mcp::Toolsets;
use crate::{LivePolicy, TextBudget, TokenScope};

/// The identity and the settings of one connection. An edge creates it when it accepts a client:
/// stdio and the command line once per process, an edge with tokens once for each token. All
/// requests of the connection refer to it.
pub struct Connection {
    principal: Principal,
    toolsets: Toolsets,
    policy: Arc<LivePolicy>,
    budget: TextBudget,
    read_access: ReadAccess,
    /// `None` if the client has no token.
    scope: Option<TokenScope>,
    discovery_limit: Arc<DiscoveryRateLimit>,
    call_limit: Arc<DiscoveryRateLimit>,
    stopping: CancellationToken,
}

/// The records that a connection may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAccess {
    /// The records of its own identity.
    #[default]
    Own,
    /// The records of all identities.
    Everyone,
}

impl Connection {
    pub fn new(principal: Principal, toolsets: Toolsets, policy: Arc<LivePolicy>) -> Connection {
        Connection {
            principal,
            toolsets,
            policy,
            budget: TextBudget::DEFAULT,
            read_access: ReadAccess::default(),
            scope: None,
            discovery_limit: Arc::default(),
            call_limit: Arc::default(),
            stopping: CancellationToken::new(),
        }
    }

    /// Sets how much of a long text the client gets.
    #[must_use]
    pub fn with_budget(mut self, budget: TextBudget) -> Connection {
        self.budget = budget;
        self
    }

    #[must_use]
    pub fn with_read_access(mut self, access: ReadAccess) -> Connection {
        self.read_access = access;
        self
    }

    /// Narrows the connection to what its token allows.
    #[must_use]
    pub fn with_scope(mut self, scope: TokenScope) -> Connection {
        if scope.reads_everyone() {
            self.read_access = ReadAccess::Everyone;
        }
        self.scope = Some(scope);
        self
    }

    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    pub fn toolsets(&self) -> &Toolsets {
        &self.toolsets
    }

    /// Returns the policy that applies now.
    pub fn policy(&self) -> Arc<Policy> {
        let policy = self.policy.get();
        match &self.scope {
            Some(scope) => Arc::new(scope.narrow(&policy)),
            None => policy,
        }
    }

    /// True if the client may only look.
    pub fn is_read_only(&self) -> bool {
        self.scope.as_ref().is_some_and(TokenScope::is_read_only)
    }

    /// True if no scope narrows what the client may do.
    pub fn is_unrestricted(&self) -> bool {
        self.scope.as_ref().is_none_or(|scope| *scope == TokenScope::all())
    }

    /// True if the client may know of this MCP server.
    pub fn sees_server(&self, server: &str) -> bool {
        self.sees_settings() || self.policy().tools.allows_server(server)
    }

    /// True if the client may know about the user's settings: their servers and their problems.
    pub fn sees_settings(&self) -> bool {
        self.scope.as_ref().is_none_or(TokenScope::reads_everyone)
    }

    /// Returns the identity whose scripts the client may use, or `None` if it may use all.
    pub fn script_owner(&self) -> Option<&Identity> {
        (!self.sees_settings()).then(|| self.principal.identity())
    }

    /// Returns how much of a long text the client gets.
    pub fn budget(&self) -> TextBudget {
        self.budget
    }

    /// Returns the counts of this connection's discoveries and calls.
    pub(crate) fn request_limits(&self) -> (Arc<DiscoveryRateLimit>, Arc<DiscoveryRateLimit>) {
        (Arc::clone(&self.discovery_limit), Arc::clone(&self.call_limit))
    }

    /// Cancels the executions of this connection, after the client has disconnected. Each one still
    /// gets its record.
    pub fn stop_executions(&self) {
        self.stopping.cancel();
    }

    /// Returns a token that is cancelled when the client has disconnected.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Returns the records that the client itself may read.
    pub fn read_scope(&self) -> ReadScope {
        match self.read_access {
            ReadAccess::Own => ReadScope::Of(self.principal.identity().clone()),
            ReadAccess::Everyone => ReadScope::Everyone,
        }
    }
}

#[cfg(test)]
mod tests;
