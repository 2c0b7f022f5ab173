//! The known tools of one server: its live list, or until it has answered, the list saved on disk.
//! Only tools that [`Trust`] accepts are visible.

mod cache;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use crate::{Narrow, ServerConfig, Settings, trust::Trust, upstream::Listing};
use cache::Cache;

/// How lists saved on disk are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheUse {
    /// They answer until the servers do; the servers are started anyway.
    #[default]
    Meanwhile,
    /// A fresh one replaces the server's own list, and the server is not started.
    Instead,
    /// They are not read.
    Never,
}

pub(crate) struct Shelf {
    narrow: Narrow,
    trust: Trust,
    /// The cache file.
    path: Option<PathBuf>,
    uses: CacheUse,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// True once the cache file was read.
    is_loaded: bool,
    /// The server's complete list, reviewed again when the user approves something.
    live: Option<Arc<Live>>,
    seen: Option<Arc<Listing>>,
    /// The time until which a list from disk counts as fresh.
    fresh_until: Option<SystemTime>,
}

struct Live {
    listing: Listing,
    version: Option<String>,
}

impl Shelf {
    pub(crate) fn new(config: &ServerConfig, settings: &Settings) -> Shelf {
        let name = format!("{}.json", config.name);
        Shelf {
            narrow: config.narrow.clone(),
            trust: Trust::new(config, settings),
            path: settings.home.as_ref().map(|home| home.join("cache/tools").join(name)),
            uses: settings.cache,
            state: Mutex::default(),
        }
    }

    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Returns the visible tools, or `None` before the first list. The first call reads a file.
    pub(crate) fn listing(&self) -> Option<Arc<Listing>> {
        self.state().seen.clone()
    }

    /// Returns true if a fresh list makes starting the server unnecessary.
    pub(crate) fn is_enough(&self) -> bool {
        let state = self.state();
        self.uses == CacheUse::Instead
            && state.seen.is_some()
            && (state.live.is_some() || is_fresh(state.fresh_until))
    }

    /// Returns true if the list comes from disk and has expired.
    pub(crate) fn is_stale(&self) -> bool {
        let state = self.state();
        state.seen.is_some() && state.live.is_none() && !is_fresh(state.fresh_until)
    }

    /// Stores the server's own list, and publishes the part that may be seen.
    pub(crate) async fn put(self: &Arc<Shelf>, listing: Listing, version: Option<String>) {
        let live = Arc::new(Live { listing, version });
        self.judge(live.clone()).await;
        let shelf = self.clone();
        let written = tokio::task::spawn_blocking(move || {
            let Some(path) = &shelf.path else { return };
            let cache = Cache::of(&live.listing, shelf.trust.identity());
            if let Err(error) = cache.write(path) {
                tracing::debug!(file = %path.display(), %error, "a list was not kept");
            }
        });
        let _ = written.await;
    }

    /// Reviews held tools again if the user may have approved them meanwhile.
    pub(crate) async fn recheck(self: &Arc<Shelf>) {
        if self.trust.is_outdated() {
            self.rejudge().await;
        }
    }

    pub(crate) async fn rejudge(self: &Arc<Shelf>) {
        let live = {
            let mut state = self.state();
            if state.live.is_none() {
                self.load(&mut state);
            }
            state.live.clone()
        };
        if let Some(live) = live {
            self.judge(live).await;
        }
    }

    async fn judge(self: &Arc<Shelf>, live: Arc<Live>) {
        let lock = self.trust.lock().await;
        let shelf = self.clone();
        // Hashing and file access would block the event loop.
        let judged = tokio::task::spawn_blocking(move || {
            let held = shelf.trust.review(&live.listing, live.version.as_deref(), lock.as_ref());
            let seen = live.listing.seen_by_user(&shelf.narrow, &held);
            let mut state = shelf.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_loaded = true;
            state.live = Some(live);
            state.seen = Some(Arc::new(seen));
        });
        let _ = judged.await;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_loaded {
            state.is_loaded = true;
            self.load(&mut state);
        }
        state
    }

    fn load(&self, state: &mut State) {
        let Some(path) = self.path.as_ref().filter(|_| self.uses != CacheUse::Never) else {
            return;
        };
        let cache = match Cache::read(path, self.trust.identity()) {
            Ok(Some(cache)) => cache,
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(file = %path.display(), %error, "a list on disk is not used");
                return;
            }
        };
        let listing = cache.listing(&self.trust);
        let is_whole = listing.tools.len() == cache.tools();
        state.seen = Some(Arc::new(listing.seen_by_user(&self.narrow, &BTreeMap::new())));
        // Without all its tools, the list must be fetched from the server.
        state.fresh_until = cache.fresh_until().filter(|_| is_whole);
    }
}

/// Tolerates a clock that was set back: no list stays fresh beyond the longest TTL.
fn is_fresh(until: Option<SystemTime>) -> bool {
    let left = until.and_then(|until| until.duration_since(SystemTime::now()).ok());
    left.is_some_and(|left| left <= crate::upstream::LIFE + Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
