use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock, PoisonError},
};

use crate::upstream::UpstreamError;

/// The limit on failures whose callers have left.
const MAX_FAILURES: usize = 1_000;

/// Why requests failed, and why the connection ended, if a JSON-RPC error cannot say it. Servers
/// cannot write here.
#[derive(Default)]
pub(in crate::upstream) struct RequestFailures {
    by_request: Mutex<HashMap<i64, UpstreamError>>,
    end_reason: OnceLock<UpstreamError>,
}

impl RequestFailures {
    pub(super) fn record(&self, request: i64, error: UpstreamError) {
        let mut by_request = self.by_request.lock().unwrap_or_else(PoisonError::into_inner);
        if by_request.len() >= MAX_FAILURES {
            by_request.clear();
        }
        by_request.insert(request, error);
    }

    pub(in crate::upstream) fn take(&self, request: i64) -> Option<UpstreamError> {
        self.by_request.lock().unwrap_or_else(PoisonError::into_inner).remove(&request)
    }

    /// Sets the reason for the end. Only the first one counts.
    pub(super) fn set_end_reason(&self, error: UpstreamError) {
        let _ = self.end_reason.set(error);
    }

    pub(in crate::upstream) fn end_reason(&self) -> Option<UpstreamError> {
        self.end_reason.get().cloned()
    }
}
