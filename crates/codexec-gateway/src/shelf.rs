//! What is known of one server's tools: from the server itself, or until it has spoken, from the
//! disk. Only what [`Trust`] lets through is ever seen.

mod cache;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use crate::{Narrow, ServerConfig, Settings, trust::Trust, upstream::Listing};
use cache::Cache;

/// What lists on disk are good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheUse {
    /// They answer until the servers do; the servers are started all the same.
    #[default]
    Meanwhile,
    /// A fresh one is as good as the server's own, and starts nobody.
    Instead,
    /// They are not read.
    Never,
}

pub(crate) struct Shelf {
    narrow: Narrow,
    trust: Trust,
    /// Where the list is kept on disk.
    path: Option<PathBuf>,
    uses: CacheUse,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether the disk was looked at.
    is_loaded: bool,
    /// All that the server lists, to be judged again when the user has approved something.
    live: Option<Arc<Live>>,
    seen: Option<Arc<Listing>>,
    /// Until when a list from the disk counts as fresh.
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

    /// The tools as last listed; `None` while nothing is known. The first look reads a file.
    pub(crate) fn listing(&self) -> Option<Arc<Listing>> {
        self.state().seen.clone()
    }

    /// Whether the server need not be asked.
    pub(crate) fn is_enough(&self) -> bool {
        let state = self.state();
        self.uses == CacheUse::Instead
            && state.seen.is_some()
            && (state.live.is_some() || is_fresh(state.fresh_until))
    }

    /// Whether what is known is from the disk, and old.
    pub(crate) fn is_stale(&self) -> bool {
        let state = self.state();
        state.seen.is_some() && state.live.is_none() && !is_fresh(state.fresh_until)
    }

    /// Takes what the server itself has listed, and shows what may be seen of it.
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

    /// Looks again at what is held, if the user may have approved it meanwhile.
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
        // Hashes and files: not on a thread that serves others.
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
        // What is not there in full has to be asked for.
        state.fresh_until = cache.fresh_until().filter(|_| is_whole);
    }
}

/// A clock that was set back makes nothing younger.
fn is_fresh(until: Option<SystemTime>) -> bool {
    let left = until.and_then(|until| until.duration_since(SystemTime::now()).ok());
    left.is_some_and(|left| left <= crate::upstream::LIFE + Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
