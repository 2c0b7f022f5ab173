use std::sync::{Arc, Mutex, PoisonError};

use codexec_types::{Policy, ToolFilter};

/// What holds now. The files that name servers may change while we run; nothing else does.
pub struct InForce {
    policy: Mutex<Arc<Policy>>,
    problems: Mutex<Vec<String>>,
    waiting: Mutex<Vec<String>>,
}

impl InForce {
    pub fn new(policy: Policy) -> InForce {
        InForce {
            policy: Mutex::new(Arc::new(policy)),
            problems: Mutex::default(),
            waiting: Mutex::default(),
        }
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

    /// The names of servers that wait for the user's approval.
    pub fn waiting(&self) -> Vec<String> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_waiting(&self, names: Vec<String>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// The same in one line for an agent, if any waits.
    pub(crate) fn waiting_note(&self) -> Option<String> {
        const NAMED: usize = 3;
        let names = self.waiting();
        let more = if names.len() > NAMED { ", .." } else { "" };
        let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| {
            format!(
                "servers that wait for the user's approval: {shown}{more}; the user runs `codexec \
                 servers approve` in this project"
            )
        })
    }
}
