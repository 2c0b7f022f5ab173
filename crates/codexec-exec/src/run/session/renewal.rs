use std::os::fd::OwnedFd;

use crate::ExecError;
use crate::run::Run;

impl Run {
    /// Gives the guest's directory the upper layer `upper-<generation>`, between two cells of a
    /// session, so that edits from outside become visible where the guest had written. The layer is
    /// created if missing; `lower` is a new mount of the same directory.
    ///
    /// After an error the caller must close the session: the directory may be half renewed.
    pub async fn renew_overlay(
        &mut self,
        generation: u32,
        lower: OwnedFd,
    ) -> Result<(), ExecError> {
        self.body.renew_overlay(generation, lower).await
    }
}
