//! The user's word on definitions that wait. Nothing a guest or an agent can say leads here.

use std::io;

use codexec_types::ServerName;

use super::Gateway;
use crate::{
    trust::{Line, Waiting, difference},
    upstream::UpstreamError,
};

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
    /// What waits of a server's tools, as far as it was seen before. Starts nothing.
    pub fn waiting(&self, server: &ServerName) -> Vec<Waiting> {
        self.upstream(server)
            .map_or_else(Vec::new, |upstream| upstream.shelf().trust().pending_approvals())
    }

    /// The same; a server that nobody has seen is started and asked. One that was seen is not: what
    /// it would list now, nobody has asked about yet.
    pub async fn waiting_now(&self, server: &ServerName) -> Result<Vec<Waiting>, ApproveError> {
        let no_server = || ApproveError::NoServer(server.clone());
        let upstream = self.upstream(server).ok_or_else(no_server)?;
        if upstream.shelf().trust().is_known() {
            return Ok(upstream.shelf().trust().pending_approvals());
        }
        let unreachable = |err: UpstreamError| ApproveError::Unreachable {
            server: server.clone(),
            reason: err.to_string(),
        };
        upstream.connected().await.map_err(unreachable)?;
        let listing = upstream.listing().unwrap_or_default();
        Ok(upstream.shelf().trust().pending_approvals_in(&listing))
    }

    /// Lets these definitions be used, exactly as they were shown. From then on nothing of this
    /// server changes without the user.
    pub async fn approve(
        &self,
        server: &ServerName,
        agreed: &[Waiting],
    ) -> Result<(), ApproveError> {
        let no_server = || ApproveError::NoServer(server.clone());
        let upstream = self.upstream(server).ok_or_else(no_server)?;
        let listing = upstream.listing().unwrap_or_default();
        let approved = upstream.shelf().trust().approve(agreed, &listing).await;
        approved.map_err(|source| ApproveError::Unwritable { server: server.clone(), source })?;
        upstream.shelf().rejudge().await;
        Ok(())
    }
}

impl Waiting {
    /// What has changed, for a person to read.
    pub fn difference(&self) -> Vec<Line> {
        difference(self.before.as_ref(), self.after.as_ref())
    }

    /// Its name, with nothing in it that could be taken for a letter of another name.
    pub fn shown_name(&self) -> String {
        let spell = |c: char| {
            if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() }
        };
        self.tool.chars().map(spell).collect()
    }

    /// The names can be told apart only by their numbers.
    pub fn is_foreign(&self) -> bool {
        !self.tool.is_ascii()
    }
}
