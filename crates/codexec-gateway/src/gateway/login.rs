use codexec_types::ServerName;
use url::Url;

use super::Gateway;
use crate::{LoginError, LoginSummary, login};

impl Gateway {
    /// Logs in to one of the servers; see [`login`]. Waiting requests retry by themselves.
    pub async fn log_in(
        &self,
        server: &ServerName,
        show: impl FnOnce(&Url),
    ) -> Result<LoginSummary, LoginError> {
        let upstream = self.upstream(server).ok_or(LoginError::Unknown)?;
        login(upstream.config(), &self.inner.shared.settings, show).await
    }
}
