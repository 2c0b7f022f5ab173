//! The user's approvals of config entries: one private file per config file and server name, in
//! codexec's home directory and never in a project.

use std::{
    io,
    path::{Path, PathBuf},
};

use codexec_files::sealed_files;
use codexec_types::Json;
use serde::{Deserialize, Serialize};

use crate::{DiscoveredServer, ParsedConfig, PendingEntry, pending::approval_key};

const TITLE: &str = "approval 1";
const MAX_BYTES: u64 = 4 << 20;

/// Reads and writes approvals. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ServerApprovals {
    folder: PathBuf,
}

/// The approved entry of one config file and server name.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalRecord {
    /// Empty for a name that was approved before the file had such an entry; it matches no entry.
    fingerprint: String,
    written: Option<Json>,
}

impl ServerApprovals {
    /// `home` is codexec's home directory.
    pub fn new(home: &Path) -> ServerApprovals {
        ServerApprovals { folder: home.join("approvals") }
    }

    /// Returns the directory of the approvals, to be watched for changes.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Clears `pending` of the approved entries. Entries of a file that the user has named are
    /// approved when they are first seen.
    pub fn apply(&self, parsed: &mut ParsedConfig) {
        for found in &mut parsed.servers {
            self.check_entry(found);
        }
    }

    fn check_entry(&self, found: &mut DiscoveredServer) {
        let Some(pending) = &mut found.pending else { return };
        let is_approved = match self.read(&pending.key) {
            Ok(Some(record)) => {
                let is_same = record.fingerprint == pending.fingerprint;
                pending.before = record.written;
                is_same
            }
            // Without a stored approval, a later change would go unnoticed: nothing is approved.
            Ok(None) => pending.is_named && found.off.is_none() && self.approve(pending).is_ok(),
            Err(error) => {
                let (server, folder) = (&found.config.name, self.folder.display());
                tracing::warn!(%server, %folder, %error, "approval cannot be read");
                false
            }
        };
        if is_approved {
            found.pending = None;
        }
    }

    /// Records the names approved in Claude Code that the file does not have. The user has not
    /// seen an entry that is added later, so it is not approved.
    pub fn record_absent<'a>(
        &self,
        file: &Path,
        names: impl Iterator<Item = &'a str>,
        has: &ParsedConfig,
    ) {
        for name in names {
            let is_named = |found: &DiscoveredServer| found.config.name.as_str() == name;
            let key = approval_key(file, name);
            if has.is_broken
                || has.servers.iter().any(is_named)
                || !matches!(self.read(&key), Ok(None))
            {
                continue;
            }
            let nothing = ApprovalRecord { fingerprint: String::new(), written: None };
            if let Err(error) = self.write(&key, &nothing) {
                tracing::warn!(%error, "approvals cannot be written");
            }
        }
    }

    /// Approves an entry exactly as it is.
    pub fn approve(&self, entry: &PendingEntry) -> io::Result<()> {
        let (fingerprint, written) = (entry.fingerprint.clone(), Some(entry.written.clone()));
        self.write(&entry.key, &ApprovalRecord { fingerprint, written })
    }

    fn read(&self, key: &str) -> io::Result<Option<ApprovalRecord>> {
        let file = sealed_files::read(&self.path(key), TITLE, MAX_BYTES);
        let file = file.map_err(io::Error::other)?;
        let record = file.map(|(body, _)| serde_json::from_str(&body)).transpose();
        record.map_err(io::Error::other)
    }

    fn write(&self, key: &str, record: &ApprovalRecord) -> io::Result<()> {
        sealed_files::write(&self.path(key), TITLE, &serde_json::to_string(record)?).map(drop)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

#[cfg(test)]
mod tests;
