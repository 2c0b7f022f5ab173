//! What is remembered of one server: which definitions were accepted, and which wait.

use std::collections::BTreeMap;

use codexec_types::Json;
use serde::{Deserialize, Serialize};

/// Tools of one server that are remembered. What comes beyond them is held.
pub(super) const MAX_PINS: usize = 10_000;
/// A definition that is longer is remembered by its hash alone.
const TEXT_BYTES: usize = 256 << 10;
/// The same when all texts of one file together are longer.
const ALL_TEXT_BYTES: usize = 24 << 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Of the entry that it was made for: another program or address is another server.
    pub(super) identity: String,
    /// What the server said of itself.
    pub(super) version: Option<String>,
    /// The user has agreed to something, so nothing changes any more without the user.
    pub(super) by_hand: bool,
    /// What was accepted. A tool that is no longer listed stays: it must not come back as another.
    pub(super) pins: BTreeMap<String, Definition>,
    /// What waits for approval, as it was last seen.
    pub(super) held: BTreeMap<String, Definition>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    pub(crate) sha256: String,
    /// As the server wrote it, unless that was too long to keep.
    pub(crate) text: Option<Json>,
}

impl Record {
    pub(super) fn new(identity: &str) -> Record {
        Record { identity: identity.to_owned(), ..Record::default() }
    }

    /// The definition of a tool if it was accepted with exactly this hash.
    pub(super) fn pinned(&self, tool: &str, sha256: &str) -> Option<&Definition> {
        self.pins.get(tool).filter(|pin| pin.sha256 == sha256)
    }

    /// `false`: there is no room for one more.
    pub(super) fn pin(&mut self, tool: &str, definition: Definition) -> bool {
        if self.pins.len() >= MAX_PINS && !self.pins.contains_key(tool) {
            return false;
        }
        self.held.remove(tool);
        self.pins.insert(tool.to_owned(), definition);
        true
    }

    pub(super) fn hold(&mut self, tool: &str, definition: Definition) {
        if self.held.len() < MAX_PINS || self.held.contains_key(tool) {
            self.held.insert(tool.to_owned(), definition);
        }
    }

    /// Leaves out the texts that there is no room for.
    pub(super) fn bound(&mut self) {
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
