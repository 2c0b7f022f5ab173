use std::sync::{Arc, Mutex, PoisonError};

use codexec_types::{Policy, ToolFilter};

/// The current policy and the state of the server files, which may change while the server runs.
pub struct LiveSettings {
    policy: Mutex<Arc<Policy>>,
    problems: Mutex<Vec<String>>,
    waiting: Mutex<Vec<String>>,
}

impl LiveSettings {
    pub fn new(policy: Policy) -> LiveSettings {
        LiveSettings {
            policy: Mutex::new(Arc::new(policy)),
            problems: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    pub fn policy(&self) -> Arc<Policy> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the tool filter, after its patterns were parsed with the current servers' names.
    pub fn set_tools(&self, tools: ToolFilter) {
        let mut policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Policy { tools, ..Policy::clone(&policy) };
        *policy = Arc::new(now);
    }

    /// Returns the problems of the files that configure servers, as sentences.
    pub fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_problems(&self, problems: Vec<String>) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = problems;
    }

    /// Returns the names of servers that are waiting for the user's approval.
    pub fn pending_servers(&self) -> Vec<String> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_pending_servers(&self, names: Vec<String>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Returns the same as one line for an agent, if there are any.
    pub(crate) fn waiting_note(&self) -> Option<String> {
        const NAMED: usize = 3;
        let names = self.pending_servers();
        let more = if names.len() > NAMED { ", .." } else { "" };
        let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| {
            format!(
                "servers waiting for the user's approval: {shown}{more}; the user runs `codexec \
                 servers approve` in this project"
            )
        })
    }
}
