//! Who may use a session, and with what it ends.

use codexec_types::{Grant, Principal};

use super::Session;
use crate::Client;
use crate::inside::Scope;

/// The client or the code that opened a session.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    principal: Principal,
    /// The scope of the code that opened it, if code did.
    scope: Option<Scope>,
    /// True if the session is the client's: opened by the client's own request, or by code that has
    /// the grant to keep it. Any other session ends with its scope.
    is_clients: bool,
}

impl Opener {
    pub(crate) fn of(client: &Client) -> Opener {
        Opener {
            principal: client.principal.clone(),
            scope: client.scope().cloned(),
            is_clients: client.may(Grant::KeepSessions),
        }
    }

    pub(super) fn is_clients(&self) -> bool {
        self.is_clients
    }

    /// True if a session of this opener ends with the scope.
    pub(super) fn ends_with(&self, scope: &Scope) -> bool {
        !self.is_clients && self.scope.as_ref() == Some(scope)
    }

    /// True if the requester is the opener: the same client by its own request, or the same code.
    fn is(&self, client: &Client) -> bool {
        self.principal == client.principal && self.scope.as_ref() == client.scope()
    }

    /// True if the requester may use a session of this opener.
    ///
    /// THREAT[SES-7]: sessions of other principals do not exist for a client.
    /// THREAT[OWN-1]: nor do sessions that the code did not open, unless the user grants it.
    pub(super) fn is_reached_by(&self, client: &Client) -> bool {
        let is_theirs = self.principal == client.principal;
        self.is(client) || is_theirs && client.may(Grant::AllSessions)
    }
}

impl Session {
    /// True if the requester may use the session. Code may use the one it runs in, too.
    pub(super) fn is_reached_by(&self, client: &Client) -> bool {
        self.runs(client) || self.opener.is_reached_by(client)
    }

    /// True if the calling code runs in this session.
    fn runs(&self, client: &Client) -> bool {
        matches!(client.scope(), Some(Scope::Session(session)) if *session == self.id)
    }

    /// Returns how well the name matches this session, 0 for best. Names that code gives are its
    /// own: they never match a request of the client, or of other code.
    pub(super) fn is_named(&self, name: &str, client: &Client) -> Option<u8> {
        if self.name.as_deref() != Some(name) || !self.is_reached_by(client) {
            return None;
        }
        let is_its_own = self.runs(client) || self.opener.is(client);
        match (is_its_own, self.opener.is_clients) {
            (true, _) => Some(0),
            (false, true) => Some(1),
            (false, false) => None,
        }
    }
}
