//! The sessions that have ended, remembered so that late requests get the reason.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use codexec_types::SessionId;

use super::{OpenSession, Opener, SessionError};
use crate::Client;

/// Number of ended sessions that are remembered.
const MAX_REMEMBERED: usize = 200;

#[derive(Default)]
pub(super) struct EndedSessions(VecDeque<EndedSession>);

struct EndedSession {
    id: SessionId,
    name: Option<String>,
    opener: Opener,
    reason: String,
    is_reported: EndReport,
}

/// True as soon as the opener of a session has been told that it has ended.
#[derive(Clone, Default)]
pub(super) struct EndReport(Arc<AtomicBool>);

impl EndReport {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl EndedSessions {
    pub(super) fn push(&mut self, session: &OpenSession, reason: &str) {
        if self.0.len() >= MAX_REMEMBERED {
            // Code can open and close many sessions, but does not make codexec forget the end of one
            // that its opener still takes for open.
            let is_dispensable =
                |ended: &EndedSession| ended.name.is_none() || ended.is_reported.is_set();
            let last = self.0.len().saturating_sub(1);
            self.0.remove(self.0.iter().rposition(is_dispensable).unwrap_or(last));
        }
        self.0.push_front(EndedSession {
            id: session.id.clone(),
            name: session.name.clone(),
            opener: session.opener.clone(),
            reason: reason.to_owned(),
            is_reported: session.end_report.clone(),
        });
    }

    /// Returns the error for a request to the ended session with this id, if the client had access
    /// to it.
    pub(super) fn find(&self, id: &str, client: &Client) -> Option<SessionError> {
        let is_it = |ended: &&EndedSession| {
            ended.id.as_str() == id && ended.opener.is_accessible_to(client)
        };
        let ended = self.0.iter().find(is_it)?;
        if ended.opener.is_same_as(client) {
            ended.is_reported.set();
        }
        Some(SessionError::Ended { id: ended.id.clone(), reason: ended.reason.clone() })
    }

    /// Returns why the client's last session with this name ended, if it had one. Fails if the
    /// client does not know yet that it has ended; after that error, the client knows.
    ///
    /// THREAT[SES-11]: code that was written for a session never runs in another one unnoticed.
    pub(super) fn check_name(
        &self,
        name: &str,
        client: &Client,
    ) -> Result<Option<String>, SessionError> {
        let is_it = |ended: &&EndedSession| {
            ended.name.as_deref() == Some(name) && ended.opener.is_same_as(client)
        };
        let Some(ended) = self.0.iter().find(is_it) else { return Ok(None) };
        if ended.is_reported.is_set() {
            return Ok(Some(ended.reason.clone()));
        }
        ended.is_reported.set();
        Err(SessionError::EndedUnseen { name: name.to_owned(), reason: ended.reason.clone() })
    }
}
