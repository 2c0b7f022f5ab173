use std::sync::{Arc, Mutex, PoisonError};

use codexec_types::{Policy, ToolFilter};

/// What holds now. The files that name servers may change while we run; nothing else does.
pub struct InForce {
    policy: Mutex<Arc<Policy>>,
    problems: Mutex<Vec<String>>,
}

impl InForce {
    pub fn new(policy: Policy) -> InForce {
        InForce { policy: Mutex::new(Arc::new(policy)), problems: Mutex::default() }
    }

    pub fn policy(&self) -> Arc<Policy> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same tools as before, read against the servers that there are now.
    pub fn set_tools(&self, tools: ToolFilter) {
        let mut policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Policy { tools, ..Policy::clone(&policy) };
        *policy = Arc::new(now);
    }

    /// What is wrong with the files that name servers, in sentences.
    pub fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_problems(&self, problems: Vec<String>) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = problems;
    }
}
