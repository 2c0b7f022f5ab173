//! Settings of sessions, scripts and packages, which persist between executions.

use std::path::PathBuf;
use std::time::Duration;

use codexec_exec::packages::{self, IndexHost, PackageIndex, PackagePattern};
use codexec_server::SessionSettings;

use super::{ConfigError, HostEnvironment, file, guests, limits};

pub(super) fn sessions(file: &file::SessionsSection) -> Result<SessionSettings, ConfigError> {
    let usual = SessionSettings::default();
    let max = limits::within("sessions.max", file.max, usual.max as u64, 0..=100)?;
    let by_code = (usual.max_by_code as u64).min(max);
    let max_by_code = limits::within("sessions.max-by-code", file.max_by_code, by_code, 0..=max)?;
    let usual_s = usual.idle.as_secs();
    let idle_s = limits::within("sessions.idle-s", file.idle_s, usual_s, 1..=24 * 60 * 60)?;
    Ok(SessionSettings {
        max: usize::try_from(max).unwrap_or(usual.max),
        max_by_code: usize::try_from(max_by_code).unwrap_or(usual.max_by_code),
        idle: Duration::from_secs(idle_s),
    })
}

pub(super) fn scripts(
    file: &file::ScriptsSection,
    host: &HostEnvironment,
) -> Result<PathBuf, ConfigError> {
    let named = guests::absolute_path("scripts.folder", file.folder.as_deref(), host)?;
    Ok(named.unwrap_or_else(|| host.state_dir.join("scripts")))
}

/// Returns the package settings, without the environment of pip and npm.
pub(super) fn packages(
    file: &file::PackagesSection,
    host: &HostEnvironment,
) -> Result<packages::PackageSettings, ConfigError> {
    let usual = packages::PackageSettings::default();
    let usual_mib = usual.max_bytes >> 20;
    let max_mib = limits::within("packages.max-mib", file.max_mib, usual_mib, 1..=1 << 20)?;
    let usual_s = usual.timeout.as_secs();
    let timeout_s = limits::within("packages.timeout-s", file.timeout_s, usual_s, 1..=3_600)?;
    let index = |key, text: &Option<String>| {
        let parsed = text.as_deref().map(PackageIndex::parse).transpose();
        parsed.map_err(|error| ConfigError::Address { key, error })
    };
    let hosts = |key, texts: &[String]| {
        let parsed = texts.iter().map(|text| IndexHost::parse(text)).collect::<Result<Vec<_>, _>>();
        parsed.map_err(|error| ConfigError::Address { key, error })
    };
    let patterns = |key, texts: &[String]| {
        let parse = |text: &String| {
            PackagePattern::parse(text)
                .ok_or_else(|| ConfigError::Package { key, text: text.clone() })
        };
        texts.iter().map(parse).collect::<Result<Vec<_>, _>>()
    };
    Ok(packages::PackageSettings {
        home: Some(host.state_dir.join("packages")),
        python_index: index("packages.python-index", &file.python_index)?,
        python_hosts: hosts("packages.python-hosts", &file.python_hosts)?,
        npm_registry: index("packages.npm-registry", &file.npm_registry)?,
        npm_hosts: hosts("packages.npm-hosts", &file.npm_hosts)?,
        ca_file: guests::absolute_path("packages.ca-file", file.ca_file.as_deref(), host)?,
        install_scripts: file.install_scripts,
        allow: file.allow.as_deref().map(|list| patterns("packages.allow", list)).transpose()?,
        deny: patterns("packages.deny", &file.deny)?,
        timeout: Duration::from_secs(timeout_s),
        max_bytes: max_mib << 20,
        environment: Vec::new(),
    })
}
