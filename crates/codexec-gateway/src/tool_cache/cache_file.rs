//! A server's list on disk: tool names and hashes of their definitions. The definitions themselves
//! are stored with the approvals, so writing to this file cannot make an unapproved definition
//! visible.

use std::{
    collections::HashMap,
    path::Path,
    time::{Duration, SystemTime},
};

use codexec_files::sealed_files::{self, SealedFileError};
use serde::{Deserialize, Serialize};

use crate::{
    tool::Tool,
    trust::Trust,
    upstream::{MAX_LIST_TTL, ToolListing},
};

const TITLE: &str = "list 1";
const MAX_BYTES: u64 = 4 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CacheFile {
    /// The identity of the server entry it was made for.
    identity: String,
    listed_at_ms: u64,
    life_ms: u64,
    /// Names and hashes, in the server's order.
    tools: Vec<(String, String)>,
    problems: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum CacheFileError {
    #[error(transparent)]
    Unfit(#[from] SealedFileError),
    #[error("it is not a saved tool list")]
    NotAList(#[from] serde_json::Error),
    #[error("it belongs to another server entry")]
    Foreign,
}

impl CacheFile {
    pub(super) fn from_listing(listing: &ToolListing, identity: &str) -> CacheFile {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let pair =
            |(tool, digest): (&std::sync::Arc<Tool>, &str)| (tool.name.clone(), digest.to_owned());
        CacheFile {
            identity: identity.to_owned(),
            listed_at_ms: to_millis(now),
            life_ms: to_millis(listing.ttl.unwrap_or(MAX_LIST_TTL)),
            tools: listing.all_tools().map(pair).collect(),
            problems: listing.problems.clone(),
        }
    }

    pub(super) fn read(path: &Path, identity: &str) -> Result<Option<CacheFile>, CacheFileError> {
        let Some((body, _)) = sealed_files::read(path, TITLE, MAX_BYTES)? else { return Ok(None) };
        let cache: CacheFile = serde_json::from_str(&body)?;
        if cache.identity != identity {
            return Err(CacheFileError::Foreign);
        }
        Ok(Some(cache))
    }

    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        sealed_files::write(path, TITLE, &serde_json::to_string(self)?).map(drop)
    }

    pub(super) fn tool_count(&self) -> usize {
        self.tools.len()
    }

    /// Limits the expiry to the longest TTL from now, whatever the file says.
    pub(super) fn fresh_until(&self) -> Option<SystemTime> {
        let listed_at =
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(self.listed_at_ms))?;
        if listed_at > SystemTime::now() {
            return None;
        }
        listed_at.checked_add(Duration::from_millis(self.life_ms).min(MAX_LIST_TTL))
    }

    /// Returns the tools whose definitions were accepted with exactly these hashes.
    pub(super) fn accepted_listing(&self, trust: &Trust) -> ToolListing {
        let mut listing = ToolListing::default();
        let digests: HashMap<&str, &str> =
            self.tools.iter().map(|(name, digest)| (name.as_str(), digest.as_str())).collect();
        for definition in trust.pinned_definitions(&self.tools) {
            let Ok(tool) = Tool::read_text(&definition) else { continue };
            if let Some(digest) = digests.get(tool.name.as_str()) {
                listing.add(tool, (*digest).to_owned());
            }
        }
        listing.problems.clone_from(&self.problems);
        listing
    }
}

fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
