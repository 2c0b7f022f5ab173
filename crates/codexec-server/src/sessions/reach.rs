//! Who may use a session, and with what it ends.

use codexec_types::{Grant, Principal};

use super::Session;
use crate::Client;
use crate::inside::Scope;

/// Who opened a session.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    principal: Principal,
    /// The code that did, where it was code.
    scope: Option<Scope>,
    /// True if the session is the client's: opened by its own request, or left to it by code that
    /// the user lets do so. Any other ends with its scope.
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

    /// True if a session of this opener's ends with the scope.
    pub(super) fn ends_with(&self, scope: &Scope) -> bool {
        !self.is_clients && self.scope.as_ref() == Some(scope)
    }

    /// True if this is who asks: the same client by its own request, or the same code.
    fn is(&self, client: &Client) -> bool {
        self.principal == client.principal && self.scope.as_ref() == client.scope()
    }

    /// THREAT[SES-7]: to other principals a session is not there.
    /// THREAT[OWN-1]: nor to code that did not open it, unless the user says otherwise.
    pub(super) fn is_reached_by(&self, client: &Client) -> bool {
        let is_theirs = self.principal == client.principal;
        self.is(client) || is_theirs && client.may(Grant::AllSessions)
    }
}

impl Session {
    /// Code reaches the sessions that it opened, and the one that it runs in.
    pub(super) fn is_reached_by(&self, client: &Client) -> bool {
        self.runs(client) || self.opener.is_reached_by(client)
    }

    /// True if the code that asks runs in this session.
    fn runs(&self, client: &Client) -> bool {
        matches!(client.scope(), Some(Scope::Session(session)) if *session == self.id)
    }

    /// How well a name that a client gives means this session, 0 for best. Names that code gives are its own:
    /// none of them means something else to the client, or to other code.
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
