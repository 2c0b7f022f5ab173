//! The user's approval of held definitions. No guest or agent can reach this code.

use std::io;

use codexec_mcp_config::{DiffLine, find_differences};
use codexec_types::ServerName;

use super::Gateway;
use crate::{trust::PendingApproval, upstream::UpstreamError};

#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    #[error("no server \"{0}\"")]
    NoServer(ServerName),
    #[error("server \"{server}\": {reason}")]
    Unreachable { server: ServerName, reason: String },
    #[error("server \"{server}\": approvals cannot be written: {source}")]
    Unwritable { server: ServerName, source: io::Error },
}

impl Gateway {
    /// Returns the held definitions of a server, as far as they are known. Starts nothing.
    pub fn pending_approvals(&self, server: &ServerName) -> Vec<PendingApproval> {
        self.upstream(server)
            .map_or_else(Vec::new, |upstream| upstream.tool_cache().trust().pending_approvals())
    }

    /// Returns the held definitions, and starts a server that was never seen. A server that was
    /// seen is not asked again: its newer list would show definitions that nobody has reviewed.
    pub async fn fetch_pending_approvals(
        &self,
        server: &ServerName,
    ) -> Result<Vec<PendingApproval>, ApproveError> {
        let no_server = || ApproveError::NoServer(server.clone());
        let upstream = self.upstream(server).ok_or_else(no_server)?;
        if upstream.tool_cache().trust().is_known() {
            return Ok(upstream.tool_cache().trust().pending_approvals());
        }
        let unreachable = |err: UpstreamError| ApproveError::Unreachable {
            server: server.clone(),
            reason: err.to_string(),
        };
        upstream.connect().await.map_err(unreachable)?;
        let listing = upstream.listing().unwrap_or_default();
        Ok(upstream.tool_cache().trust().pending_approvals_in(&listing))
    }

    /// Approves these definitions exactly as they were shown. From then on, every change of this
    /// server needs the user's approval.
    pub async fn approve(
        &self,
        server: &ServerName,
        agreed: &[PendingApproval],
    ) -> Result<(), ApproveError> {
        let no_server = || ApproveError::NoServer(server.clone());
        let upstream = self.upstream(server).ok_or_else(no_server)?;
        let listing = upstream.listing().unwrap_or_default();
        let approved = upstream.tool_cache().trust().approve(agreed, &listing).await;
        approved.map_err(|source| ApproveError::Unwritable { server: server.clone(), source })?;
        upstream.tool_cache().review_again().await;
        Ok(())
    }
}

impl PendingApproval {
    /// Returns the changes, for a person to read.
    pub fn diff_lines(&self) -> Vec<DiffLine> {
        find_differences(self.before.as_ref(), self.after.as_ref())
    }

    /// Returns the hash of the definition.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the name with every non-ASCII character escaped, so that no lookalike letter passes.
    pub fn escaped_name(&self) -> String {
        let spell = |c: char| {
            if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() }
        };
        self.tool.chars().map(spell).collect()
    }

    /// Returns true if the name has non-ASCII characters.
    pub fn has_non_ascii_name(&self) -> bool {
        !self.tool.is_ascii()
    }
}
