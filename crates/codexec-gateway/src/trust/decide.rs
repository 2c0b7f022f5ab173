//! THREAT[UP-4]: whether a definition may be used: decided from what was accepted before, what the
//! server lists now, and what the user wants to be asked about.

use std::collections::{BTreeMap, HashSet};

use codexec_types::alias;

use super::record::{Definition, MAX_PINS, Record};
use crate::TrustMode;

/// What is known of a server before it lists its tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Known {
    /// Nobody has seen it.
    #[default]
    Nothing,
    Record(Record),
    /// Something was known, and cannot be read any more.
    Lost(String),
}

/// Why a tool waits for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    New,
    Changed,
    /// It is new, and can be taken for another of the same server.
    Alike,
    /// The entry of this name was another server's when its tools were accepted.
    Moved,
    /// What was accepted can no longer be read.
    Lost,
    TooMany,
}

/// What a server says of its tools and of itself.
pub(super) struct Live<'a> {
    pub(super) identity: &'a str,
    pub(super) version: Option<&'a str>,
    pub(super) tools: Vec<(&'a str, Definition)>,
}

pub(super) struct Verdict {
    /// What is to be remembered from now on; `None` where what was known is lost.
    pub(super) record: Option<Record>,
    pub(super) held: BTreeMap<String, Why>,
}

impl Why {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Why::New => "it is new",
            Why::Changed => "its definition has changed",
            Why::Alike => "it is new and its name can be taken for another's",
            Why::Moved => "another program or address goes by this server's name now",
            Why::Lost => "what was approved of this server can no longer be read",
            Why::TooMany => "this server has had too many tools",
        }
    }
}

pub(super) fn decide(mode: TrustMode, known: Known, live: Live<'_>) -> Verdict {
    let hold_all =
        |why: Why| live.tools.iter().map(|(tool, _)| ((*tool).to_owned(), why)).collect();
    let mut record = match known {
        Known::Lost(_) => return Verdict { record: None, held: hold_all(Why::Lost) },
        Known::Record(record) if record.identity == live.identity => {
            return review(mode, record, live);
        }
        Known::Record(mut record) if record.by_hand || mode != TrustMode::Auto => {
            let held = hold_all(Why::Moved);
            for (tool, definition) in live.tools {
                record.hold(tool, definition);
            }
            return Verdict { record: Some(record), held };
        }
        Known::Nothing | Known::Record(_) => Record::new(live.identity),
    };
    // Seen for the first time.
    record.version = live.version.map(ToOwned::to_owned);
    let mut held = BTreeMap::new();
    for (tool, definition) in live.tools {
        let is_taken = mode != TrustMode::Manual && record.pin(tool, definition.clone());
        if !is_taken {
            held.insert(tool.to_owned(), Why::New);
            record.hold(tool, definition);
        }
    }
    Verdict { record: Some(record), held }
}

fn review(mode: TrustMode, mut record: Record, live: Live<'_>) -> Verdict {
    let is_new_version = record.version.as_deref() != live.version;
    let may_change = mode == TrustMode::Auto && is_new_version && !record.by_hand;
    let mut aliases: HashSet<String> = record.pins.keys().map(|tool| alias(tool)).collect();
    let mut held = BTreeMap::new();
    for (tool, definition) in live.tools {
        let why = match record.pins.get(tool) {
            Some(pin) if pin.sha256 == definition.sha256 => continue,
            Some(_) if may_change => None,
            Some(_) => Some(Why::Changed),
            None if mode != TrustMode::Auto => Some(Why::New),
            None if aliases.contains(&alias(tool)) || !tool.is_ascii() => Some(Why::Alike),
            None if record.pins.len() >= MAX_PINS => Some(Why::TooMany),
            // What waits goes on waiting, however it came to.
            None if record.held.contains_key(tool) => Some(Why::New),
            None => None,
        };
        if let Some(why) = why {
            held.insert(tool.to_owned(), why);
            record.hold(tool, definition);
        } else {
            record.pin(tool, definition);
            aliases.insert(alias(tool));
        }
    }
    record.version = live.version.map(ToOwned::to_owned);
    Verdict { record: Some(record), held }
}

#[cfg(test)]
mod tests;
