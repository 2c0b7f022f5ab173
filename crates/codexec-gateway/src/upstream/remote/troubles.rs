use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock, PoisonError},
};

use crate::upstream::UpstreamError;

/// The limit on failures whose callers have left.
const KEPT: usize = 1_000;

/// Why requests failed, and why the connection ended, if a JSON-RPC error cannot say it. Servers
/// cannot write here.
#[derive(Default)]
pub(in crate::upstream) struct Troubles {
    by_request: Mutex<HashMap<i64, UpstreamError>>,
    end: OnceLock<UpstreamError>,
}

impl Troubles {
    pub(super) fn note(&self, request: i64, error: UpstreamError) {
        let mut by_request = self.by_request.lock().unwrap_or_else(PoisonError::into_inner);
        if by_request.len() >= KEPT {
            by_request.clear();
        }
        by_request.insert(request, error);
    }

    pub(in crate::upstream) fn take(&self, request: i64) -> Option<UpstreamError> {
        self.by_request.lock().unwrap_or_else(PoisonError::into_inner).remove(&request)
    }

    /// Sets the reason for the end. Only the first one counts.
    pub(super) fn end(&self, error: UpstreamError) {
        let _ = self.end.set(error);
    }

    pub(in crate::upstream) fn why_ended(&self) -> Option<UpstreamError> {
        self.end.get().cloned()
    }
}
