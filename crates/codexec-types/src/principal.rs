//! The identity behind a request.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The identity behind a request, and the way by which the request came.
///
/// Text form: `local@stdio`, `token:ci@http`, with `/AGENT` at the end if an agent is named. Older
/// versions wrote only the identity, for example `local`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Principal {
    identity: Identity,
    /// `None` in what an older version wrote.
    edge: Option<Edge>,
    agent: Option<String>,
}

/// The owner of everything that a request creates. Two requests of the same identity see the same
/// executions, sessions and files, whichever edge they came by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The user who started codexec.
    LocalUser,
    /// The holder of a named token.
    Token(TokenName),
}

/// The name of a token: 1 to 64 of `A-Z a-z 0-9 _ . -`. So a name is safe in the text form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenName(String);

/// The part of codexec that accepts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// MCP over standard input and output.
    Stdio,
    /// A command of `codexec` in a terminal.
    CommandLine,
    Http,
}

/// A text that names no principal.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no principal; expected for example local@stdio or token:NAME@http")]
pub struct InvalidPrincipal(String);

/// Maximum length of an agent's name.
const AGENT_CHARS: usize = 200;

impl Principal {
    pub fn new(identity: Identity, edge: Edge) -> Principal {
        Principal { identity, edge: Some(edge), agent: None }
    }

    /// Returns the same principal on behalf of an agent. The name is a claim of the client: a
    /// policy may narrow what the agent can do, but the name never gives a permission.
    #[must_use]
    pub fn for_agent(&self, agent: Option<&str>) -> Principal {
        let clean = |agent: &str| -> String {
            agent.chars().filter(|c| !c.is_control()).take(AGENT_CHARS).collect()
        };
        let agent = agent.map(clean).filter(|agent| !agent.is_empty());
        Principal { agent, ..self.clone() }
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub fn edge(&self) -> Option<Edge> {
        self.edge
    }

    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    pub fn parse(text: &str) -> Option<Principal> {
        let (owner, agent) = match text.split_once('/') {
            Some((owner, agent)) => (owner, Some(agent)),
            None => (text, None),
        };
        let (identity, edge) = match owner.split_once('@') {
            Some((identity, edge)) => (identity, Some(Edge::parse(edge)?)),
            None => (owner, None),
        };
        let named = Principal { identity: Identity::parse(identity)?, edge, agent: None };
        Some(named.for_agent(agent))
    }
}

impl Identity {
    pub fn parse(text: &str) -> Option<Identity> {
        match text {
            "local" => Some(Identity::LocalUser),
            text => text.strip_prefix("token:").and_then(TokenName::new).map(Identity::Token),
        }
    }
}

impl TokenName {
    pub fn new(text: &str) -> Option<TokenName> {
        let is_fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        let is_name = (1..=64).contains(&text.len()) && text.bytes().all(is_fine);
        is_name.then(|| TokenName(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Edge {
    pub const ALL: [Edge; 3] = [Edge::Stdio, Edge::CommandLine, Edge::Http];

    pub fn name(self) -> &'static str {
        match self {
            Edge::Stdio => "stdio",
            Edge::CommandLine => "cli",
            Edge::Http => "http",
        }
    }

    pub fn parse(text: &str) -> Option<Edge> {
        Edge::ALL.into_iter().find(|edge| edge.name() == text)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::LocalUser => f.write_str("local"),
            Identity::Token(name) => write!(f, "token:{}", name.0),
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.identity)?;
        if let Some(edge) = self.edge {
            write!(f, "@{}", edge.name())?;
        }
        match &self.agent {
            Some(agent) => write!(f, "/{agent}"),
            None => Ok(()),
        }
    }
}

impl TryFrom<String> for Principal {
    type Error = InvalidPrincipal;

    fn try_from(text: String) -> Result<Principal, InvalidPrincipal> {
        Principal::parse(&text).ok_or_else(|| InvalidPrincipal(text.chars().take(80).collect()))
    }
}

impl From<Principal> for String {
    fn from(principal: Principal) -> String {
        principal.to_string()
    }
}

#[cfg(test)]
mod tests;
