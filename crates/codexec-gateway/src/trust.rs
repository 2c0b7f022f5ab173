//! Records which tool definitions of a server are accepted. One file per server, written under a
//! lock, because several codexec processes can run at the same time.

mod decide;
mod identity;
mod record;
mod record_lock;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use codexec_files::{FileLock, FileStamp, sealed_files};
use codexec_mcp_config::{ServerConfig, TrustMode};
use codexec_types::Json;

pub(crate) use decide::HoldReason;

use crate::{GatewaySettings, upstream::ToolListing};
use decide::{LiveTools, PriorTrust, decide};
use record::{PinnedDefinition, TrustRecord};

const TITLE: &str = "trust 1";
const MAX_BYTES: u64 = 64 << 20;

/// The accepted and held tool definitions of one server.
pub(crate) struct Trust {
    server: String,
    mode: TrustMode,
    identity: String,
    /// `None` if there is no home directory: the record lives only in memory.
    path: Option<PathBuf>,
    memory: Mutex<Memory>,
}

/// The record as last read or written.
#[derive(Default)]
struct Memory {
    prior: PriorTrust,
    /// The stamp of the file that `prior` was read from.
    stamp: Option<FileStamp>,
    is_read: bool,
}

/// A held definition, which needs the user's approval.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingApproval {
    pub tool: String,
    /// The definition that was accepted before.
    pub before: Option<Json>,
    /// The definition that the server lists now; `None` if it is too long to store.
    pub after: Option<Json>,
    pub(crate) sha256: String,
}

impl Trust {
    pub(crate) fn new(config: &ServerConfig, settings: &GatewaySettings) -> Trust {
        let name = format!("{}.json", config.name);
        Trust {
            server: config.name.to_string(),
            mode: config.narrow.trust.unwrap_or(settings.trust),
            identity: identity::identity(config),
            path: settings.home.as_ref().map(|home| home.join("trust").join(name)),
            memory: Mutex::default(),
        }
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the accepted definitions that match these names and hashes.
    pub(crate) fn pinned_definitions(&self, tools: &[(String, String)]) -> Vec<Json> {
        let memory = self.read();
        let PriorTrust::Record(record) = &memory.prior else { return Vec::new() };
        if record.identity != self.identity {
            return Vec::new();
        }
        let text =
            |(tool, sha256): &(String, String)| record.find_pinned(tool, sha256)?.text.clone();
        tools.iter().filter_map(text).collect()
    }

    /// Returns true if this server's tools were listed before.
    pub(crate) fn is_known(&self) -> bool {
        let memory = self.read();
        matches!(&memory.prior, PriorTrust::Record(record)
            if record.identity == self.identity || !record.held.is_empty())
    }

    /// Returns a sentence that says why the approvals cannot be used, if that is the case.
    pub(crate) fn problem(&self) -> Option<String> {
        let memory = self.read();
        let (PriorTrust::Lost(why), Some(path)) = (&memory.prior, &self.path) else { return None };
        let (file, server) = (path.display(), &self.server);
        Some(format!(
            "its approvals cannot be used: {file}: {why}; approve its tools again with \
             `codexec servers approve {server}`"
        ))
    }

    /// Returns true if another process has written the file since it was read.
    pub(crate) fn is_outdated(&self) -> bool {
        let Some(path) = &self.path else { return false };
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.is_read && memory.stamp != FileStamp::read(path)
    }

    /// Locks the file, so that no other process writes it between a read and a write.
    pub(crate) async fn lock(&self) -> Option<FileLock> {
        let path = self.path.as_ref()?;
        match record_lock::acquire(path).await {
            Ok(lock) => Some(lock),
            Err(error) => {
                tracing::warn!(server = self.server, %error, "approvals cannot be written");
                None
            }
        }
    }

    /// Reviews everything that a server lists, and returns the tools to hold. The decision is
    /// written to the file only under the lock.
    pub(crate) fn review(
        &self,
        listing: &ToolListing,
        version: Option<&str>,
        lock: Option<&FileLock>,
    ) -> BTreeMap<String, HoldReason> {
        let mut memory = self.read();
        let tools = listing.all_tools().map(|(tool, sha256)| {
            let sha256 = sha256.to_owned();
            (tool.name.as_str(), PinnedDefinition { sha256, text: Some(tool.raw.clone()) })
        });
        let live = LiveTools { identity: &self.identity, version, tools: tools.collect() };
        let verdict = decide(self.mode, memory.prior.clone(), live);
        if let Some(mut record) = verdict.record {
            record.drop_long_texts();
            self.remember(&mut memory, record, lock);
        }
        verdict.held
    }

    /// Returns the held definitions in the file.
    pub(crate) fn pending_approvals(&self) -> Vec<PendingApproval> {
        let memory = self.read();
        let PriorTrust::Record(record) = &memory.prior else { return Vec::new() };
        let waiting = |(tool, definition): (&String, &PinnedDefinition)| PendingApproval {
            tool: tool.clone(),
            before: record.pins.get(tool).and_then(|pin| pin.text.clone()),
            after: definition.text.clone(),
            sha256: definition.sha256.clone(),
        };
        record.held.iter().map(waiting).collect()
    }

    /// Returns the held definitions of a listing, including those that the file does not have.
    pub(crate) fn pending_approvals_in(&self, listing: &ToolListing) -> Vec<PendingApproval> {
        let memory = self.read();
        let before = |tool: &str| match &memory.prior {
            PriorTrust::Record(record) => record.pins.get(tool).and_then(|pin| pin.text.clone()),
            PriorTrust::Nothing | PriorTrust::Lost(_) => None,
        };
        let waiting = listing.held_tools().map(|(tool, sha256)| PendingApproval {
            tool: tool.name.clone(),
            before: before(&tool.name),
            after: Some(tool.raw.clone()),
            sha256: sha256.to_owned(),
        });
        waiting.collect()
    }

    /// Approves exactly these definitions by hand, and with them those accepted so far. All other
    /// listed definitions stay held.
    pub(crate) async fn approve(
        &self,
        agreed: &[PendingApproval],
        listing: &ToolListing,
    ) -> std::io::Result<()> {
        let waiting =
            self.pending_approvals().into_iter().chain(self.pending_approvals_in(listing));
        let waiting: Vec<PendingApproval> = waiting.collect();
        let Some(path) = &self.path else { return Err(std::io::ErrorKind::NotFound.into()) };
        let _lock = record_lock::acquire(path).await?;
        let mut memory = self.read();
        let mut record = match &memory.prior {
            PriorTrust::Record(record) if record.identity == self.identity => record.clone(),
            // Approvals of another server do not apply to this one.
            PriorTrust::Record(_) | PriorTrust::Nothing => TrustRecord::new(&self.identity),
            PriorTrust::Lost(_) => {
                sealed_files::set_aside(path)?;
                TrustRecord::new(&self.identity)
            }
        };
        record.by_hand = true;
        for waiting in &waiting {
            record.hold(&waiting.tool, waiting.definition());
        }
        for waiting in agreed {
            record.pin(&waiting.tool, waiting.definition());
        }
        record.drop_long_texts();
        memory.stamp = Some(write(path, &record)?);
        memory.prior = PriorTrust::Record(record);
        Ok(())
    }

    /// Returns the record; reads the file again if it has changed.
    fn read(&self) -> std::sync::MutexGuard<'_, Memory> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &self.path else { return memory };
        if memory.is_read && memory.stamp == FileStamp::read(path) {
            return memory;
        }
        memory.is_read = true;
        memory.stamp = FileStamp::read(path);
        memory.prior = match sealed_files::read(path, TITLE, MAX_BYTES) {
            Ok(None) => PriorTrust::Nothing,
            Ok(Some((body, stamp))) => {
                memory.stamp = Some(stamp);
                serde_json::from_str(&body)
                    .map_or_else(|err| PriorTrust::Lost(err.to_string()), PriorTrust::Record)
            }
            Err(error) => PriorTrust::Lost(error.to_string()),
        };
        if let PriorTrust::Lost(why) = &memory.prior {
            let (server, file) = (&self.server, path.display());
            tracing::warn!(
                server, %file, why,
                "approvals cannot be used; its tools are held until `codexec servers approve`"
            );
        }
        memory
    }

    fn remember(&self, memory: &mut Memory, record: TrustRecord, lock: Option<&FileLock>) {
        let is_new = !matches!(&memory.prior, PriorTrust::Record(prior) if *prior == record);
        if let (Some(path), true, Some(_)) = (&self.path, is_new, lock) {
            match write(path, &record) {
                Ok(stamp) => memory.stamp = Some(stamp),
                Err(error) => {
                    tracing::warn!(server = self.server, %error, "approvals cannot be written");
                }
            }
        }
        memory.prior = PriorTrust::Record(record);
    }
}

impl PendingApproval {
    fn definition(&self) -> PinnedDefinition {
        PinnedDefinition { sha256: self.sha256.clone(), text: self.after.clone() }
    }
}

fn write(path: &Path, record: &TrustRecord) -> std::io::Result<FileStamp> {
    sealed_files::write(path, TITLE, &serde_json::to_string(record)?)
}
