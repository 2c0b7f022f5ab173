//! When servers are started, and when their lists are merged into the catalogue.

use std::sync::{Arc, PoisonError, atomic::Ordering};

use futures::future::join_all;
use tokio::{task::JoinHandle, time::Duration};

use super::{Fleet, Gateway};
use crate::{
    catalogue::Catalogue,
    upstream::{ToolListing, Upstream},
};

/// Threads that read saved lists; more would only compete for the disk.
const READERS: usize = 2;
/// The pause between two starts in the background.
const START_PAUSE: Duration = Duration::from_millis(20);

type StaleCatalogue = (Arc<Fleet>, Vec<Option<Arc<ToolListing>>>, Arc<Catalogue>);

impl Gateway {
    /// Begins to start all servers and returns at once. Must be called inside a tokio runtime.
    pub fn start_in_advance(&self) {
        for upstream in &self.fleet().upstreams {
            upstream.start_if_needed();
        }
    }

    /// Starts servers whose lists are already known, one after the other in the background:
    /// starting a process takes longer than an answer may.
    pub(super) fn start_in_background(&self, upstreams: Vec<Arc<Upstream>>) {
        let is_due = |upstream: &Arc<Upstream>| {
            upstream.needs_start() && !upstream.tool_cache().is_sufficient()
        };
        let due: Vec<Arc<Upstream>> = upstreams.into_iter().filter(is_due).collect();
        if due.is_empty() || self.inner.is_warming.swap(true, Ordering::AcqRel) {
            return;
        }
        // A weak reference, so that this task does not keep the servers alive.
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            for upstream in due {
                tokio::time::sleep(START_PAUSE).await;
                if inner.strong_count() == 0 {
                    return;
                }
                upstream.start_if_needed();
            }
            if let Some(inner) = inner.upgrade() {
                inner.is_warming.store(false, Ordering::Release);
            }
        });
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
