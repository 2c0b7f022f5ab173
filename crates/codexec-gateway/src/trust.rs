//! Which definitions of one server may be used, remembered across processes: one file per server,
//! written under a lock, since several processes of ours run at a time.

mod decide;
mod difference;
mod digest;
mod identity;
mod record;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use codexec_types::Json;

pub use difference::{Line, Sign};

pub(crate) use decide::Why;
pub(crate) use difference::difference;
pub(crate) use digest::digest;

use crate::{
    ServerConfig, Settings, TrustMode,
    kept::{self, Lock, Stamp},
    upstream::ToolListing,
};
use decide::{Known, Live, decide};
use record::{Definition, Record};

const TITLE: &str = "trust 1";
const MAX_BYTES: u64 = 64 << 20;

pub(crate) struct Trust {
    server: String,
    mode: TrustMode,
    identity: String,
    /// `None`: it is remembered for as long as we live.
    path: Option<PathBuf>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    known: Known,
    /// The file that `known` is from.
    stamp: Option<Stamp>,
    is_read: bool,
}

/// A definition that waits for the user's word.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    pub tool: String,
    /// What was accepted before.
    pub before: Option<Json>,
    /// What the server lists now; `None` where that is too long to be kept.
    pub after: Option<Json>,
    sha256: String,
}

impl Trust {
    pub(crate) fn new(config: &ServerConfig, settings: &Settings) -> Trust {
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

    /// Of these names and hashes, the definitions that were accepted exactly so.
    pub(crate) fn pinned(&self, tools: &[(String, String)]) -> Vec<Json> {
        let memory = self.read();
        let Known::Record(record) = &memory.known else { return Vec::new() };
        if record.identity != self.identity {
            return Vec::new();
        }
        let text = |(tool, sha256): &(String, String)| record.pinned(tool, sha256)?.text.clone();
        tools.iter().filter_map(text).collect()
    }

    /// Whether this very server's tools were seen before.
    pub(crate) fn is_known(&self) -> bool {
        let memory = self.read();
        matches!(&memory.known, Known::Record(record)
            if record.identity == self.identity || !record.held.is_empty())
    }

    /// Why nothing that was accepted counts, in a sentence.
    pub(crate) fn problem(&self) -> Option<String> {
        let memory = self.read();
        let (Known::Lost(why), Some(path)) = (&memory.known, &self.path) else { return None };
        let (file, server) = (path.display(), &self.server);
        Some(format!(
            "what was approved of it is lost: {file}: {why}; begin anew with `codexec servers \
             approve {server}`"
        ))
    }

    /// Whether somebody else has written the file since we looked.
    pub(crate) fn is_outdated(&self) -> bool {
        let Some(path) = &self.path else { return false };
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.is_read && memory.stamp != kept::stamp(path)
    }

    /// So that nobody writes between a look at the file and a change of it.
    pub(crate) async fn lock(&self) -> Option<Lock> {
        let path = self.path.as_ref()?;
        match Lock::of(path).await {
            Ok(lock) => Some(lock),
            Err(error) => {
                tracing::warn!(server = self.server, %error, "approvals cannot be written");
                None
            }
        }
    }

    /// Looks at everything that a server lists, and gives what must wait. What is decided is
    /// written only under the lock.
    pub(crate) fn review(
        &self,
        listing: &ToolListing,
        version: Option<&str>,
        lock: Option<&Lock>,
    ) -> BTreeMap<String, Why> {
        let mut memory = self.read();
        let tools = listing.all_tools().map(|(tool, sha256)| {
            let sha256 = sha256.to_owned();
            (tool.name.as_str(), Definition { sha256, text: Some(tool.raw.clone()) })
        });
        let live = Live { identity: &self.identity, version, tools: tools.collect() };
        let verdict = decide(self.mode, memory.known.clone(), live);
        if let Some(mut record) = verdict.record {
            record.bound();
            self.remember(&mut memory, record, lock);
        }
        verdict.held
    }

    /// What waits, as far as the file tells.
    pub(crate) fn waiting(&self) -> Vec<Waiting> {
        let memory = self.read();
        let Known::Record(record) = &memory.known else { return Vec::new() };
        let waiting = |(tool, definition): (&String, &Definition)| Waiting {
            tool: tool.clone(),
            before: record.pins.get(tool).and_then(|pin| pin.text.clone()),
            after: definition.text.clone(),
            sha256: definition.sha256.clone(),
        };
        record.held.iter().map(waiting).collect()
    }

    /// What waits of a list that was just read, whatever the file can tell.
    pub(crate) fn waiting_of(&self, listing: &ToolListing) -> Vec<Waiting> {
        let memory = self.read();
        let before = |tool: &str| match &memory.known {
            Known::Record(record) => record.pins.get(tool).and_then(|pin| pin.text.clone()),
            Known::Nothing | Known::Lost(_) => None,
        };
        let waiting = listing.held_tools().map(|(tool, sha256)| Waiting {
            tool: tool.name.clone(),
            before: before(&tool.name),
            after: Some(tool.raw.clone()),
            sha256: sha256.to_owned(),
        });
        waiting.collect()
    }

    /// The user's word for exactly these definitions, and with it for what was accepted so far.
    /// Whatever else is listed goes on waiting.
    pub(crate) async fn approve(
        &self,
        agreed: &[Waiting],
        listing: &ToolListing,
    ) -> std::io::Result<()> {
        let waiting = self.waiting().into_iter().chain(self.waiting_of(listing));
        let waiting: Vec<Waiting> = waiting.collect();
        let Some(path) = &self.path else { return Err(std::io::ErrorKind::NotFound.into()) };
        let _lock = Lock::of(path).await?;
        let mut memory = self.read();
        let mut record = match &memory.known {
            Known::Record(record) if record.identity == self.identity => record.clone(),
            // What another server was allowed is not this one's.
            Known::Record(_) | Known::Nothing => Record::new(&self.identity),
            Known::Lost(_) => {
                kept::set_aside(path)?;
                Record::new(&self.identity)
            }
        };
        record.by_hand = true;
        for waiting in &waiting {
            record.hold(&waiting.tool, waiting.definition());
        }
        for waiting in agreed {
            record.pin(&waiting.tool, waiting.definition());
        }
        record.bound();
        memory.stamp = Some(write(path, &record)?);
        memory.known = Known::Record(record);
        Ok(())
    }

    /// What is known now. Reads the file if it is another than before.
    fn read(&self) -> std::sync::MutexGuard<'_, Memory> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &self.path else { return memory };
        if memory.is_read && memory.stamp == kept::stamp(path) {
            return memory;
        }
        memory.is_read = true;
        memory.stamp = kept::stamp(path);
        memory.known = match kept::read(path, TITLE, MAX_BYTES) {
            Ok(None) => Known::Nothing,
            Ok(Some((body, stamp))) => {
                memory.stamp = Some(stamp);
                serde_json::from_str(&body)
                    .map_or_else(|err| Known::Lost(err.to_string()), Known::Record)
            }
            Err(unfit) => Known::Lost(unfit.to_string()),
        };
        if let Known::Lost(why) = &memory.known {
            let (server, file) = (&self.server, path.display());
            tracing::warn!(
                server, %file, why,
                "approvals cannot be used; its tools wait for `codexec servers approve`"
            );
        }
        memory
    }

    fn remember(&self, memory: &mut Memory, record: Record, lock: Option<&Lock>) {
        let is_news = !matches!(&memory.known, Known::Record(known) if *known == record);
        if let (Some(path), true, Some(_)) = (&self.path, is_news, lock) {
            match write(path, &record) {
                Ok(stamp) => memory.stamp = Some(stamp),
                Err(error) => {
                    tracing::warn!(server = self.server, %error, "approvals cannot be written");
                }
            }
        }
        memory.known = Known::Record(record);
    }
}

impl Waiting {
    fn definition(&self) -> Definition {
        Definition { sha256: self.sha256.clone(), text: self.after.clone() }
    }
}

fn write(path: &Path, record: &Record) -> std::io::Result<Stamp> {
    kept::write(path, TITLE, &serde_json::to_string(record)?)
}
