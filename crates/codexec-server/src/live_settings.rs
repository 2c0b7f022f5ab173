use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use codexec_mcp_config::{ParsedConfig, ServerApprovals};

/// The state of the server files, which may change while the server runs.
#[derive(Default)]
pub struct LiveSettings {
    files: Mutex<Arc<ParsedConfig>>,
    approvals: OnceLock<ServerApprovals>,
}

impl LiveSettings {
    /// Returns what the server files say now.
    pub fn files(&self) -> Arc<ParsedConfig> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_files(&self, files: ParsedConfig) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(files);
    }

    /// Returns the approvals of entries in the files, if there can be any.
    pub fn approvals(&self) -> Option<&ServerApprovals> {
        self.approvals.get()
    }

    /// Sets the approvals, once.
    pub fn set_approvals(&self, approvals: ServerApprovals) {
        let _ = self.approvals.set(approvals);
    }

    /// Returns the problems of the files that configure servers, as sentences.
    pub fn problems(&self) -> Vec<String> {
        self.files().problems.iter().map(ToString::to_string).collect()
    }

    /// Returns the names of servers that are waiting for the user's approval.
    pub fn pending_servers(&self) -> Vec<String> {
        self.files().waiting_names()
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
