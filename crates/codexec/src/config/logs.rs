use std::time::Duration;

use codexec_store::{Durability, Retention};

use super::{ConfigError, file, limits::within};

const DAY_S: u64 = 24 * 60 * 60;

/// How executions are stored, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogSettings {
    pub(crate) durability: Durability,
    pub(crate) retention: Retention,
}

pub(super) fn logs(file: &file::LogsSection) -> Result<LogSettings, ConfigError> {
    let default = Retention::default();
    let days = |key, value, default: Duration| {
        let days = within(key, value, default.as_secs() / DAY_S, 1..=36_500)?;
        Ok::<_, ConfigError>(Duration::from_secs(days * DAY_S))
    };
    let max_mib = within("logs.max-mib", file.max_mib, default.max_bytes >> 20, 16..=16_777_216)?;
    Ok(LogSettings {
        durability: match file.durability.as_deref() {
            None | Some("process") => Durability::Process,
            Some("power") => Durability::Power,
            Some(other) => return Err(ConfigError::Durability(other.to_owned())),
        },
        retention: Retention {
            success: days("logs.success-days", file.success_days, default.success)?,
            failure: days("logs.failure-days", file.failure_days, default.failure)?,
            session: days("logs.session-days", file.session_days, default.session)?,
            max_bytes: max_mib << 20,
        },
    })
}
