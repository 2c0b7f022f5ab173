//! Which entries the user has let start: one private file for each file and name, below our own
//! directory and never in a project.

use std::{
    io,
    path::{Path, PathBuf},
};

use codexec_types::Json;
use serde::{Deserialize, Serialize};

use crate::{
    Found, Parsed,
    config::{PendingEntry, key},
    kept,
};

const TITLE: &str = "approval 1";
const MAX_BYTES: u64 = 4 << 20;

/// Reads and writes approvals. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ServerApprovals {
    folder: PathBuf,
}

/// The entry that is approved for one file and name.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// Empty: the name was known when the file had no such entry, and none is approved.
    fingerprint: String,
    written: Option<Json>,
}

impl ServerApprovals {
    /// `home` is our own directory.
    pub fn new(home: &Path) -> ServerApprovals {
        ServerApprovals { folder: home.join("approvals") }
    }

    /// Where they are kept: a change in it is a change of what may start.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lets the approved entries of a file start. Entries of a file that the user has named are
    /// approved as they are seen first.
    pub fn settle(&self, parsed: &mut Parsed) {
        for found in &mut parsed.servers {
            self.settle_entry(found);
        }
    }

    fn settle_entry(&self, found: &mut Found) {
        let Some(pending) = &mut found.pending else { return };
        let is_approved = match self.read(&pending.key) {
            Ok(Some(record)) => {
                let is_same = record.fingerprint == pending.fingerprint;
                pending.before = record.written;
                is_same
            }
            // What cannot be kept approves nothing: a change of it could not be seen.
            Ok(None) => pending.is_named && found.off.is_none() && self.approve(pending).is_ok(),
            Err(error) => {
                let (server, folder) = (&found.config.name, self.folder.display());
                tracing::warn!(%server, %folder, %error, "an approval cannot be used");
                false
            }
        };
        if is_approved {
            found.pending = None;
        }
    }

    /// Notes which of the names that are approved in Claude Code the file does not have: an entry
    /// that comes later is not what the user has seen.
    pub fn note_absent<'a>(&self, file: &Path, names: impl Iterator<Item = &'a str>, has: &Parsed) {
        for name in names {
            let is_there = |found: &Found| found.config.name.as_str() == name;
            let key = key(file, name);
            if has.is_broken
                || has.servers.iter().any(is_there)
                || !matches!(self.read(&key), Ok(None))
            {
                continue;
            }
            let nothing = Record { fingerprint: String::new(), written: None };
            if let Err(error) = self.write(&key, &nothing) {
                tracing::warn!(%error, "approvals cannot be written");
            }
        }
    }

    /// The user's word for an entry exactly as it is.
    pub fn approve(&self, entry: &PendingEntry) -> io::Result<()> {
        let (fingerprint, written) = (entry.fingerprint.clone(), Some(entry.written.clone()));
        self.write(&entry.key, &Record { fingerprint, written })
    }

    fn read(&self, key: &str) -> io::Result<Option<Record>> {
        let kept = kept::read(&self.path(key), TITLE, MAX_BYTES).map_err(io::Error::other)?;
        let record = kept.map(|(body, _)| serde_json::from_str(&body)).transpose();
        record.map_err(io::Error::other)
    }

    fn write(&self, key: &str, record: &Record) -> io::Result<()> {
        kept::write(&self.path(key), TITLE, &serde_json::to_string(record)?).map(drop)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

#[cfg(test)]
mod tests;
