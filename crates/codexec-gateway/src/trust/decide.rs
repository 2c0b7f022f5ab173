//! THREAT[UP-4]: decides which tool definitions may be used, from those accepted before, those that
//! the server lists now, and the trust mode.

use std::collections::{BTreeMap, HashSet};

use codexec_mcp_config::TrustMode;
use codexec_types::to_identifier;

use super::record::{MAX_PINS, PinnedDefinition, TrustRecord};

/// The record of a server before it lists its tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum PriorTrust {
    /// The server has never listed its tools.
    #[default]
    Nothing,
    Record(TrustRecord),
    /// There is a record, but it cannot be read; holds the reason.
    Lost(String),
}

/// The reason why a tool is held for the user's approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldReason {
    New,
    Changed,
    /// The tool is new, and its name is easily confused with another of the same server.
    Alike,
    /// The entry of this name was for another server when its tools were accepted.
    Moved,
    /// The record of accepted tools can no longer be read.
    Lost,
    TooMany,
}

/// The tools that a server lists now, with its identity and version.
pub(super) struct LiveTools<'a> {
    pub(super) identity: &'a str,
    pub(super) version: Option<&'a str>,
    pub(super) tools: Vec<(&'a str, PinnedDefinition)>,
}

/// The decision about a server's tools.
pub(super) struct TrustVerdict {
    /// The new record; `None` if the old one is lost.
    pub(super) record: Option<TrustRecord>,
    pub(super) held: BTreeMap<String, HoldReason>,
}

impl HoldReason {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            HoldReason::New => "it is new",
            HoldReason::Changed => "its definition has changed",
            HoldReason::Alike => "it is new and its name is easily confused with another tool's",
            HoldReason::Moved => "another program or URL has this server's name now",
            HoldReason::Lost => "the approvals of this server can no longer be read",
            HoldReason::TooMany => "this server has listed too many tools",
        }
    }
}

pub(super) fn decide(mode: TrustMode, prior: PriorTrust, live: LiveTools<'_>) -> TrustVerdict {
    let hold_all =
        |why: HoldReason| live.tools.iter().map(|(tool, _)| ((*tool).to_owned(), why)).collect();
    let mut record = match prior {
        PriorTrust::Lost(_) => {
            return TrustVerdict { record: None, held: hold_all(HoldReason::Lost) };
        }
        PriorTrust::Record(record) if record.identity == live.identity => {
            return review(mode, record, live);
        }
        PriorTrust::Record(mut record) if record.by_hand || mode != TrustMode::Auto => {
            let held = hold_all(HoldReason::Moved);
            for (tool, definition) in live.tools {
                record.hold(tool, definition);
            }
            return TrustVerdict { record: Some(record), held };
        }
        PriorTrust::Nothing | PriorTrust::Record(_) => TrustRecord::new(live.identity),
    };
    // The server lists its tools for the first time.
    record.version = live.version.map(ToOwned::to_owned);
    let mut held = BTreeMap::new();
    for (tool, definition) in live.tools {
        let is_accepted = mode != TrustMode::Manual && record.pin(tool, definition.clone());
        if !is_accepted {
            held.insert(tool.to_owned(), HoldReason::New);
            record.hold(tool, definition);
        }
    }
    TrustVerdict { record: Some(record), held }
}

fn review(mode: TrustMode, mut record: TrustRecord, live: LiveTools<'_>) -> TrustVerdict {
    let is_new_version = record.version.as_deref() != live.version;
    let may_change = mode == TrustMode::Auto && is_new_version && !record.by_hand;
    let mut aliases: HashSet<String> = record.pins.keys().map(|tool| to_identifier(tool)).collect();
    let mut held = BTreeMap::new();
    for (tool, definition) in live.tools {
        let why = match record.pins.get(tool) {
            Some(pin) if pin.sha256 == definition.sha256 => continue,
            Some(_) if may_change => None,
            Some(_) => Some(HoldReason::Changed),
            None if mode != TrustMode::Auto => Some(HoldReason::New),
            None if aliases.contains(&to_identifier(tool)) || !tool.is_ascii() => {
                Some(HoldReason::Alike)
            }
            None if record.pins.len() >= MAX_PINS => Some(HoldReason::TooMany),
            // A held tool stays held, whatever the mode was when it was first held.
            None if record.held.contains_key(tool) => Some(HoldReason::New),
            None => None,
        };
        if let Some(why) = why {
            held.insert(tool.to_owned(), why);
            record.hold(tool, definition);
        } else {
            record.pin(tool, definition);
            aliases.insert(to_identifier(tool));
        }
    }
    record.version = live.version.map(ToOwned::to_owned);
    TrustVerdict { record: Some(record), held }
}

#[cfg(test)]
mod tests;
