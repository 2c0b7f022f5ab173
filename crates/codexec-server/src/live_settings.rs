use std::sync::{Mutex, PoisonError};

/// The state of the server files, which may change while the server runs.
#[derive(Default)]
pub struct LiveSettings {
    problems: Mutex<Vec<String>>,
    waiting: Mutex<Vec<String>>,
}

impl LiveSettings {
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

    /// Returns the waiting servers as one line for an agent, if there are any.
    pub fn waiting_note(&self) -> Option<String> {
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
