//! Settings of what is kept between executions.

use std::path::PathBuf;
use std::time::Duration;

use codexec_server::SessionSettings;

use super::{ConfigError, Place, file, guests, limits};

pub(super) fn sessions(file: &file::Sessions) -> Result<SessionSettings, ConfigError> {
    let usual = SessionSettings::default();
    let max = limits::within("sessions.max", file.max, usual.max as u64, 0..=100)?;
    let usual_s = usual.idle.as_secs();
    let idle_s = limits::within("sessions.idle-s", file.idle_s, usual_s, 1..=24 * 60 * 60)?;
    Ok(SessionSettings {
        max: usize::try_from(max).unwrap_or(usual.max),
        idle: Duration::from_secs(idle_s),
    })
}

pub(super) fn scripts(file: &file::Scripts, place: &Place) -> Result<PathBuf, ConfigError> {
    let named = guests::whole("scripts.folder", file.folder.as_deref(), place)?;
    Ok(named.unwrap_or_else(|| place.state.join("scripts")))
}
