//! When servers are started, and when their lists are merged into the catalogue.

use std::sync::{Arc, PoisonError};

use codexec_types::ToolFilter;
use futures::{
    StreamExt as _,
    future::join_all,
    stream::{self, FuturesUnordered},
};
use tokio::{
    task::JoinHandle,
    time::{Duration, Instant, timeout, timeout_at},
};

use super::{Fleet, Gateway, MissingServer};
use crate::{
    SearchWait,
    catalogue::Catalogue,
    upstream::{START_PERMIT_TIME, ToolListing, Upstream, UpstreamState},
};

/// Threads that read saved lists; more would only compete for the disk.
const READERS: usize = 2;
/// The pause before each start in the background.
const START_PAUSE: Duration = Duration::from_millis(20);
/// Servers that start concurrently in the background; more would only compete for the cores.
pub(super) const BACKGROUND_STARTS: usize = 4;

type StaleCatalogue = (Arc<Fleet>, Vec<Option<Arc<ToolListing>>>, Arc<Catalogue>);

impl Gateway {
    /// Starts the permitted servers that have no fresh list, a few at a time in the background,
    /// those that hung before last. Returns at once. Must be called inside a tokio runtime.
    pub fn start_unlisted(&self, allowed: &ToolFilter) {
        let (gateway, fleet) = (self.clone(), self.wanted_upstreams(allowed));
        tokio::spawn(async move {
            let lacks_list = |upstream: &Arc<Upstream>| upstream.tool_cache().lacks_fresh_list();
            // Reads files.
            let unlisted = tokio::task::spawn_blocking(move || {
                fleet.into_iter().filter(lacks_list).collect::<Vec<_>>()
            });
            if let Ok(unlisted) = unlisted.await {
                gateway.start_in_background(unlisted);
            }
        });
    }

    /// Starts servers in the background: starting a process takes longer than an answer may.
    pub(super) fn start_in_background(&self, upstreams: Vec<Arc<Upstream>>) {
        let is_due = |upstream: &Arc<Upstream>| {
            upstream.needs_start()
                && !upstream.tool_cache().is_sufficient()
                && upstream.queue_start()
        };
        let mut due: Vec<Arc<Upstream>> = upstreams.into_iter().filter(is_due).collect();
        if due.is_empty() {
            return;
        }
        due.sort_by_key(|upstream| (upstream.is_hung(), upstream.listing().is_some()));
        let permits = Arc::clone(&self.inner.background_starts);
        // A weak reference, so that this task does not keep the servers alive.
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            let start = async |upstream: Arc<Upstream>| {
                let _permit = permits.acquire().await;
                tokio::time::sleep(START_PAUSE).await;
                upstream.leave_queue();
                if inner.strong_count() > 0 {
                    // A server that takes longer lets the next one start.
                    let _ = timeout(START_PERMIT_TIME, upstream.connect()).await;
                }
            };
            stream::iter(due).for_each_concurrent(BACKGROUND_STARTS, start).await;
        });
    }

    /// Starts every permitted server, and waits as the settings say for an answer about all of
    /// them. Returns the tools that are known then, and the servers that are missing.
    pub(super) async fn gather_lists(
        &self,
        allowed: &ToolFilter,
        is_match: impl Fn(&Catalogue) -> bool + Clone + Send + 'static,
    ) -> (Arc<Catalogue>, Vec<MissingServer>) {
        let SearchWait::FirstMatch(patience) = self.inner.shared.settings.search_wait else {
            return self.gather_all_lists(allowed).await;
        };
        let wanted = self.recheck_wanted(allowed).await;
        self.start_in_background(wanted.clone());
        let until = Instant::now() + patience;
        let is_awaited = |upstream: &&Arc<Upstream>| {
            upstream.listing().is_none()
                && !upstream.is_hung()
                && !matches!(upstream.state(), UpstreamState::Failed(_))
        };
        let mut starts: FuturesUnordered<_> =
            wanted.iter().filter(is_awaited).map(|upstream| upstream.wait_for_start()).collect();
        loop {
            let (catalogue, is_match) = (self.catalogue().await, is_match.clone());
            let is_over = starts.is_empty()
                || self.run_blocking(move || is_match(&catalogue)).await.unwrap_or(true);
            if is_over || !matches!(timeout_at(until, starts.next()).await, Ok(Some(()))) {
                return (self.catalogue().await, self.list_missing(&wanted));
            }
        }
    }

    /// Waits for every permitted server that can answer, for requests that need the whole list.
    pub(super) async fn gather_all_lists(
        &self,
        allowed: &ToolFilter,
    ) -> (Arc<Catalogue>, Vec<MissingServer>) {
        let wanted = self.recheck_wanted(allowed).await;
        let until = self.list_deadline();
        join_all(wanted.iter().map(|upstream| upstream.wait_until_settled(until))).await;
        self.start_in_background(wanted.clone());
        (self.catalogue().await, self.list_missing(&wanted))
    }

    /// Returns the permitted servers, after a look at what the user has approved meanwhile.
    async fn recheck_wanted(&self, allowed: &ToolFilter) -> Vec<Arc<Upstream>> {
        let wanted = self.wanted_upstreams(allowed);
        join_all(wanted.iter().map(|upstream| upstream.tool_cache().recheck())).await;
        wanted
    }

    fn wanted_upstreams(&self, allowed: &ToolFilter) -> Vec<Arc<Upstream>> {
        let fleet = self.fleet();
        let is_wanted = |upstream: &&Arc<Upstream>| allowed.allows_server(upstream.name().as_str());
        fleet.upstreams.iter().filter(is_wanted).cloned().collect()
    }

    /// Begins to read the saved lists and to index them. Returns at once, with a handle to wait
    /// for. Must be called inside a tokio runtime.
    pub fn load_saved_lists(&self) -> JoinHandle<()> {
        let gateway = self.clone();
        let fleet = self.fleet();
        tokio::spawn(async move {
            let read = |reader: usize| {
                let fleet = Arc::clone(&fleet);
                tokio::task::spawn_blocking(move || {
                    for upstream in fleet.upstreams.iter().skip(reader).step_by(READERS) {
                        upstream.listing();
                    }
                })
            };
            let words = tokio::task::spawn_blocking(codexec_tool_search::load_thesaurus);
            join_all((0..READERS).map(read)).await;
            gateway.catalogue().await;
            // If this failed, the first search does the preparation.
            let _ = words.await;
        })
    }

    /// Returns the current catalogue, rebuilt only if some list has changed.
    pub(super) async fn catalogue(&self) -> Arc<Catalogue> {
        if let Ok(known) = self.current_catalogue() {
            return known;
        }
        // Concurrent callers wait for one build.
        let _permit = self.inner.catalogue_build.acquire().await;
        let (fleet, listings, known) = match self.current_catalogue() {
            Ok(known) => return known,
            Err(outdated) => outdated,
        };
        // Indexing thousands of tools takes milliseconds, too long for the event loop.
        let made =
            tokio::task::spawn_blocking(move || Catalogue::new(&fleet.names, listings)).await;
        let Ok(made) = made else { return known };
        let made = Arc::new(made);
        *self.inner.catalogue.lock().unwrap_or_else(PoisonError::into_inner) = made.clone();
        made
    }

    /// Returns the catalogue if it is current, or else what to build it from, and the old one.
    fn current_catalogue(&self) -> Result<Arc<Catalogue>, StaleCatalogue> {
        let fleet = self.fleet();
        let listings: Vec<_> = fleet.upstreams.iter().map(|up| up.listing()).collect();
        let known = self.inner.catalogue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_made_from(&listings) { Ok(known) } else { Err((fleet, listings, known)) }
    }
}
