use std::sync::{Arc, Mutex, PoisonError};

use codexec_types::{Policy, ToolFilter};

/// A policy that may change while connections use it.
pub struct LivePolicy(Mutex<Arc<Policy>>);

impl LivePolicy {
    pub fn new(policy: Policy) -> LivePolicy {
        LivePolicy(Mutex::new(Arc::new(policy)))
    }

    /// Returns the policy that applies now.
    pub fn get(&self) -> Arc<Policy> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the tool filter, after its patterns were parsed with the current servers' names.
    pub fn set_tools(&self, tools: ToolFilter) {
        let mut policy = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Policy { tools, ..Policy::clone(&policy) };
        *policy = Arc::new(now);
    }
}
