//! The known tools of one server: its live list, or until it has answered, the list saved on disk.
//! Only tools that [`Trust`] accepts are visible.

mod cache_file;
mod hung_file;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use crate::{GatewaySettings, trust::Trust, upstream::ToolListing};
use cache_file::CacheFile;
use codexec_mcp_config::{ServerConfig, ServerOptions};

/// How lists saved on disk are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolCacheMode {
    /// Saved lists are used until the servers answer; the servers start as well.
    #[default]
    Meanwhile,
    /// A fresh saved list is used, and the server is not started.
    Instead,
    /// Saved lists are ignored.
    Never,
}

pub(crate) struct ToolCache {
    narrow: ServerOptions,
    trust: Trust,
    /// The cache file.
    path: Option<PathBuf>,
    mode: ToolCacheMode,
    state: Mutex<CacheState>,
}

#[derive(Default)]
struct CacheState {
    /// True once the cache file was read.
    is_loaded: bool,
    /// The server's complete list, reviewed again when the user approves something.
    live: Option<Arc<LiveList>>,
    visible: Option<Arc<ToolListing>>,
    /// The time until which a list from disk counts as fresh.
    fresh_until: Option<SystemTime>,
    /// True if the last start of the server took too long, in this process or an earlier one.
    is_hung: bool,
}

struct LiveList {
    listing: ToolListing,
    version: Option<String>,
}

impl ToolCache {
    pub(crate) fn new(config: &ServerConfig, settings: &GatewaySettings) -> ToolCache {
        let name = format!("{}.json", config.name);
        ToolCache {
            narrow: config.narrow.clone(),
            trust: Trust::new(config, settings),
            path: settings.home.as_ref().map(|home| home.join("cache/tools").join(name)),
            mode: settings.cache,
            state: Mutex::default(),
        }
    }

    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Returns the visible tools, or `None` before the first list. The first call reads a file.
    pub(crate) fn listing(&self) -> Option<Arc<ToolListing>> {
        self.state().visible.clone()
    }

    /// Returns true if a fresh list makes starting the server unnecessary.
    pub(crate) fn is_sufficient(&self) -> bool {
        let state = self.state();
        self.mode == ToolCacheMode::Instead
            && state.visible.is_some()
            && (state.live.is_some() || is_fresh(state.fresh_until))
    }

    /// Returns true if the list comes from disk and has expired.
    pub(crate) fn is_stale(&self) -> bool {
        let state = self.state();
        state.visible.is_some() && state.live.is_none() && !is_fresh(state.fresh_until)
    }

    /// Returns true if there is no list, or only an expired one.
    pub(crate) fn lacks_fresh_list(&self) -> bool {
        let state = self.state();
        state.visible.is_none() || (state.live.is_none() && !is_fresh(state.fresh_until))
    }

    /// Returns true if the last start of the server took too long.
    pub(crate) fn is_hung(&self) -> bool {
        self.state().is_hung
    }

    /// Remembers whether the server's start takes too long, also for later processes.
    pub(crate) async fn set_hung(self: &Arc<ToolCache>, is_hung: bool) {
        if std::mem::replace(&mut self.state().is_hung, is_hung) == is_hung {
            return;
        }
        let tool_cache = self.clone();
        let written = tokio::task::spawn_blocking(move || {
            let Some(path) = &tool_cache.path else { return };
            if let Err(error) = hung_file::write(path, tool_cache.trust.identity(), is_hung) {
                tracing::debug!(file = %path.display(), %error, "cannot remember a hung server");
            }
        });
        let _ = written.await;
    }

    /// Stores the server's own list, and publishes the part that may be seen.
    pub(crate) async fn store(
        self: &Arc<ToolCache>,
        listing: ToolListing,
        version: Option<String>,
    ) {
        let live = Arc::new(LiveList { listing, version });
        self.review(live.clone()).await;
        let tool_cache = self.clone();
        let written = tokio::task::spawn_blocking(move || {
            let Some(path) = &tool_cache.path else { return };
            let cache = CacheFile::from_listing(&live.listing, tool_cache.trust.identity());
            if let Err(error) = cache.write(path) {
                tracing::debug!(file = %path.display(), %error, "cannot save the tool list");
            }
        });
        let _ = written.await;
    }

    /// Reviews held tools again if the user may have approved them meanwhile.
    pub(crate) async fn recheck(self: &Arc<ToolCache>) {
        if self.trust.is_outdated() {
            self.review_again().await;
        }
    }

    pub(crate) async fn review_again(self: &Arc<ToolCache>) {
        let live = {
            let mut state = self.state();
            if state.live.is_none() {
                self.load(&mut state);
            }
            state.live.clone()
        };
        if let Some(live) = live {
            self.review(live).await;
        }
    }

    async fn review(self: &Arc<ToolCache>, live: Arc<LiveList>) {
        let lock = self.trust.lock().await;
        let tool_cache = self.clone();
        // Hashing and file access would block the event loop.
        let reviewed = tokio::task::spawn_blocking(move || {
            let held =
                tool_cache.trust.review(&live.listing, live.version.as_deref(), lock.as_ref());
            let visible = live.listing.visible_to_user(&tool_cache.narrow, &held);
            let mut state = tool_cache.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_loaded = true;
            state.live = Some(live);
            state.visible = Some(Arc::new(visible));
        });
        let _ = reviewed.await;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, CacheState> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_loaded {
            state.is_loaded = true;
            self.load(&mut state);
        }
        state
    }

    fn load(&self, state: &mut CacheState) {
        let Some(path) = self.path.as_ref().filter(|_| self.mode != ToolCacheMode::Never) else {
            return;
        };
        state.is_hung = hung_file::is_marked(path, self.trust.identity());
        let cache = match CacheFile::read(path, self.trust.identity()) {
            Ok(Some(cache)) => cache,
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(file = %path.display(), %error, "ignoring the saved tool list");
                return;
            }
        };
        let listing = cache.accepted_listing(&self.trust);
        let is_whole = listing.tools.len() == cache.tool_count();
        state.visible = Some(Arc::new(listing.visible_to_user(&self.narrow, &BTreeMap::new())));
        // Without all its tools, the list must be fetched from the server.
        state.fresh_until = cache.fresh_until().filter(|_| is_whole);
    }
}

/// Tolerates a clock that was set back: no list stays fresh beyond the longest TTL.
fn is_fresh(until: Option<SystemTime>) -> bool {
    let left = until.and_then(|until| until.duration_since(SystemTime::now()).ok());
    left.is_some_and(|left| left <= crate::upstream::MAX_LIST_TTL + Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
