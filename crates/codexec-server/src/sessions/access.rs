//! Access rules of sessions, and with what they end.

use codexec_types::{Grant, Identity};

use super::OpenSession;
use crate::Client;
use crate::outer_execution::SessionScope;

/// The client or the code that opened a session.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    identity: Identity,
    /// The scope of the code that opened it, if code did.
    scope: Option<SessionScope>,
    /// True if the session is the client's: opened by the client's own request, or by code that has
    /// the grant to keep it. Any other session ends with its scope.
    is_client_owned: bool,
}

impl Opener {
    pub(crate) fn of(client: &Client) -> Opener {
        Opener {
            identity: client.identity().clone(),
            scope: client.scope().cloned(),
            is_client_owned: client.may(Grant::KeepSessions),
        }
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn is_client_owned(&self) -> bool {
        self.is_client_owned
    }

    /// True if a session of this opener ends with the scope.
    pub(super) fn ends_with(&self, scope: &SessionScope) -> bool {
        !self.is_client_owned && self.scope.as_ref() == Some(scope)
    }

    /// True if the requester is the opener: the same client by its own request, or the same code.
    pub(super) fn is_same_as(&self, client: &Client) -> bool {
        self.identity == *client.identity() && self.scope.as_ref() == client.scope()
    }

    /// True if the requester may use a session of this opener.
    ///
    /// THREAT[SES-7]: sessions of other principals do not exist for a client.
    /// THREAT[OWN-1]: nor do sessions that the code did not open, unless the user grants it.
    pub(crate) fn is_accessible_to(&self, client: &Client) -> bool {
        let is_same_identity = self.identity == *client.identity();
        self.is_same_as(client) || is_same_identity && client.may(Grant::AllSessions)
    }
}

impl OpenSession {
    /// True if the requester may use the session. Code may use the one it runs in, too.
    pub(super) fn is_accessible_to(&self, client: &Client) -> bool {
        self.runs_code_of(client) || self.opener.is_accessible_to(client)
    }

    /// True if the calling code runs in this session.
    fn runs_code_of(&self, client: &Client) -> bool {
        matches!(client.scope(), Some(SessionScope::Session(session)) if *session == self.id)
    }

    /// Returns how well the name matches this session, 0 for best. Names that code gives are its
    /// own: they never match a request of the client, or of other code.
    pub(super) fn name_rank(&self, name: &str, client: &Client) -> Option<u8> {
        if self.name.as_deref() != Some(name) || !self.is_accessible_to(client) {
            return None;
        }
        let is_own_name = self.runs_code_of(client) || self.opener.is_same_as(client);
        match (is_own_name, self.opener.is_client_owned) {
            (true, _) => Some(0),
            (false, true) => Some(1),
            (false, false) => None,
        }
    }
}
