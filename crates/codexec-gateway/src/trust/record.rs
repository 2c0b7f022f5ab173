//! The stored record of one server: its accepted and its held tool definitions.

use std::collections::BTreeMap;

use codexec_types::Json;
use serde::{Deserialize, Serialize};

/// Maximum number of recorded tools of one server. Further tools are held.
pub(super) const MAX_PINS: usize = 10_000;
/// A longer definition is recorded as its hash alone.
const TEXT_BYTES: usize = 256 << 10;
/// Maximum length of all texts in one file; beyond it, only hashes are recorded.
const ALL_TEXT_BYTES: usize = 24 << 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustRecord {
    /// The identity of the server: another program or URL is another server.
    pub(super) identity: String,
    /// The version that the server reports.
    pub(super) version: Option<String>,
    /// The user has approved a tool by hand, so no change is accepted without the user.
    pub(super) by_hand: bool,
    /// Accepted definitions. A tool that is no longer listed stays: it must not come back changed.
    pub(super) pins: BTreeMap<String, PinnedDefinition>,
    /// Definitions that need approval, as last listed.
    pub(super) held: BTreeMap<String, PinnedDefinition>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PinnedDefinition {
    pub(crate) sha256: String,
    /// The definition as the server sent it; `None` if it is too long to store.
    pub(crate) text: Option<Json>,
}

impl TrustRecord {
    pub(super) fn new(identity: &str) -> TrustRecord {
        TrustRecord { identity: identity.to_owned(), ..TrustRecord::default() }
    }

    /// Returns the accepted definition of a tool if it has this hash.
    pub(super) fn find_pinned(&self, tool: &str, sha256: &str) -> Option<&PinnedDefinition> {
        self.pins.get(tool).filter(|pin| pin.sha256 == sha256)
    }

    /// Accepts a definition. Returns false if the record is full.
    pub(super) fn pin(&mut self, tool: &str, definition: PinnedDefinition) -> bool {
        if self.pins.len() >= MAX_PINS && !self.pins.contains_key(tool) {
            return false;
        }
        self.held.remove(tool);
        self.pins.insert(tool.to_owned(), definition);
        true
    }

    pub(super) fn hold(&mut self, tool: &str, definition: PinnedDefinition) {
        if self.held.len() < MAX_PINS || self.held.contains_key(tool) {
            self.held.insert(tool.to_owned(), definition);
        }
    }

    /// Drops the texts that exceed the limits, and keeps their hashes.
    pub(super) fn drop_long_texts(&mut self) {
        let mut left = ALL_TEXT_BYTES;
        for definition in self.pins.values_mut().chain(self.held.values_mut()) {
            let length = definition.text.as_ref().map_or(0, |text| text.text().len());
            if length > TEXT_BYTES || length > left {
                definition.text = None;
            } else {
                left -= length;
            }
        }
    }
}
