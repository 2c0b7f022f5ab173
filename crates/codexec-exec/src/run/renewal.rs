use std::os::fd::OwnedFd;

use super::Run;
use crate::{ExecError, slot};

impl Run {
    /// Between two cells of a session: gives the guest's directory the upper layer
    /// `upper-<generation>`, so that edits from outside show where the guest had written. The layer
    /// is made unless it is there; `lower` is a new mount of the same directory.
    ///
    /// Where this fails, the session is to be closed: its directory may be half renewed.
    pub async fn renew_overlay(
        &mut self,
        generation: u32,
        lower: OwnedFd,
    ) -> Result<(), ExecError> {
        match (&mut self.busy, &self.home) {
            (Some(busy), Some(home)) => busy.renew_overlay(home, generation, lower).await,
            (None, _) | (_, None) => Err(slot::babble()),
        }
    }
}
