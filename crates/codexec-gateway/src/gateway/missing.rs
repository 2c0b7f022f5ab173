//! Which servers' tools are missing in an answer, and why.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use codexec_types::ServerName;

use super::Gateway;
use crate::upstream::{Upstream, UpstreamState};

/// A server whose tools are missing in an answer, or come from an old list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingServer {
    pub server: ServerName,
    pub reason: MissingReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingReason {
    Starting,
    /// The server was started, and does not answer.
    Hung,
    /// The server has not answered yet; its tools come from an expired list.
    Stale,
    /// The server failed, with this error.
    Failed(String),
}

/// Notes for the reply to an execution whose code searched for tools.
#[derive(Debug, Default)]
pub(super) struct DiscoveryNotes(Mutex<DiscoveryNotesState>);

#[derive(Debug, Default)]
struct DiscoveryNotesState {
    /// The servers that were missing in the last answer that should have included them.
    missing: BTreeMap<ServerName, MissingReason>,
    unknown: Vec<String>,
}

/// The limits on names and on lines with a reason.
const NAMED: usize = 10;
const EXPLAINED: usize = 5;
const REASON_CHARS: usize = 160;
/// The limit on notes about unknown tools.
const UNKNOWN: usize = 5;

impl Gateway {
    /// Returns those of the servers whose tools are not known, or no longer current.
    pub(super) fn list_missing(&self, wanted: &[Arc<Upstream>]) -> Vec<MissingServer> {
        let missing: Vec<MissingServer> = wanted
            .iter()
            .filter_map(|upstream| {
                let reason = missing_reason(upstream)?;
                Some(MissingServer { server: upstream.name().clone(), reason })
            })
            .collect();
        let mut notes = self.notes.lock();
        for upstream in wanted {
            notes.missing.remove(upstream.name());
        }
        for MissingServer { server, reason } in &missing {
            notes.missing.insert(server.clone(), reason.clone());
        }
        missing
    }

    /// Notes that code asked for a tool that is not known.
    pub(super) fn note_unknown(&self, note: String) {
        let mut notes = self.notes.lock();
        if notes.unknown.len() < UNKNOWN && !notes.unknown.contains(&note) {
            notes.unknown.push(note);
        }
    }

    /// Returns what this handle's answers left out, one sentence each, and forgets it.
    pub fn take_notes(&self) -> Vec<String> {
        let DiscoveryNotesState { missing, unknown } = std::mem::take(&mut *self.notes.lock());
        let missing: Vec<MissingServer> =
            missing.into_iter().map(|(server, reason)| MissingServer { server, reason }).collect();
        let mut notes = describe_missing(&missing);
        notes.extend(unknown);
        notes
    }
}

impl DiscoveryNotes {
    fn lock(&self) -> MutexGuard<'_, DiscoveryNotesState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `None` if the server's tools are known and current.
fn missing_reason(upstream: &Upstream) -> Option<MissingReason> {
    let (has_list, is_stale) = (upstream.listing().is_some(), upstream.tool_cache().is_stale());
    match upstream.state() {
        UpstreamState::Failed(failure) => Some(MissingReason::Failed(failure.error.to_string())),
        UpstreamState::Ready(_) | UpstreamState::Idle | UpstreamState::Starting if is_stale => {
            Some(MissingReason::Stale)
        }
        UpstreamState::Idle | UpstreamState::Starting if !has_list => match upstream.is_hung() {
            true => Some(MissingReason::Hung),
            false => Some(MissingReason::Starting),
        },
        UpstreamState::Ready(_) | UpstreamState::Idle | UpstreamState::Starting => None,
    }
}

/// Returns a few sentences that name the servers and say why their tools are missing.
pub fn describe_missing(missing: &[MissingServer]) -> Vec<String> {
    let named = |wanted: &MissingReason| {
        let servers = missing.iter().filter(|missing| missing.reason == *wanted);
        join_names(servers.map(|missing| missing.server.as_str()))
    };
    let mut notes = Vec::new();
    if let Some(names) = named(&MissingReason::Starting) {
        notes.push(format!(
            "incomplete: the tools of these servers are missing, because they are still starting: \
             {names}; ask again in a few seconds"
        ));
    }
    if let Some(names) = named(&MissingReason::Hung) {
        notes.push(format!(
            "incomplete: the tools of these servers are missing, because they do not answer: {names}"
        ));
    }
    if let Some(names) = named(&MissingReason::Stale) {
        notes
            .push(format!("these servers have not answered yet, and their lists are old: {names}"));
    }
    let failed = missing.iter().filter_map(|missing| match &missing.reason {
        MissingReason::Failed(reason) => Some((&missing.server, reason)),
        MissingReason::Starting | MissingReason::Hung | MissingReason::Stale => None,
    });
    let count = failed.clone().count();
    notes.extend(failed.take(EXPLAINED).map(|(server, reason)| {
        format!("server {server} is not available: {}", cut_at_word(reason, REASON_CHARS))
    }));
    if count > EXPLAINED {
        notes.push(format!("{} more servers are not available; see health", count - EXPLAINED));
    }
    notes
}

/// Joins the first names, or returns `None` if there are none.
fn join_names<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    let shown = names.get(..NAMED).unwrap_or(&names).join(", ");
    match names.len() {
        0 => None,
        count if count > NAMED => Some(format!("{shown} and {} more", count - NAMED)),
        _ => Some(shown),
    }
}

/// Cuts a text after at most this many characters, between two words, and marks the cut. Only a
/// single word that is longer is cut inside.
fn cut_at_word(text: &str, chars: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(chars) else { return text.to_owned() };
    let head = text.get(..end).unwrap_or_default();
    let is_at_end = text.get(end..).is_some_and(|rest| rest.starts_with(char::is_whitespace));
    let head = match head.rfind(char::is_whitespace).filter(|_| !is_at_end) {
        Some(end) => head.get(..end).unwrap_or_default(),
        None => head,
    };
    let is_loose = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':');
    format!("{}…", head.trim_end_matches(is_loose))
}

#[cfg(test)]
mod tests;
