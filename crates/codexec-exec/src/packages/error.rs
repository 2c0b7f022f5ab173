use std::io;
use std::time::Duration;

use crate::ExecError;

/// Why a package was not installed. Packages that were installed before are unchanged.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("{package} may not be installed: {why}")]
    Denied { package: String, why: String },
    #[error("there is no package {package} at {index}; check its spelling")]
    Unknown { package: String, index: String },
    #[error(
        "there is no version of {package} at {index} that fits {version} and this machine; leave the version out for the newest"
    )]
    NoVersion { package: String, version: String, index: String },
    #[error(
        "{package} has to be built on this machine, which runs code of the package; \
         `packages.install-scripts = true` in config.toml allows it, or choose a version that is \
         offered as a wheel"
    )]
    NeedsBuild { package: String },
    #[error(
        "the index cannot be reached ({host}: {why}); check the network, or name another index \
         with `{setting}` in config.toml"
    )]
    Unreachable { host: String, why: String, setting: &'static str },
    #[error(
        "the installer tried to reach {host}, which is not a host of the index; if the index \
         keeps its files there, add it to `{setting}` in config.toml"
    )]
    OtherHost { host: String, setting: &'static str },
    #[error("{0}")]
    NoInstaller(String),
    #[error("{0}")]
    Settings(String),
    #[error("the install took more than {} s and was stopped; raise `packages.timeout-s` in config.toml", .0.as_secs())]
    TimedOut(Duration),
    #[error("the packages take more than {max_mib} MiB; raise `packages.max-mib` in config.toml")]
    TooBig { max_mib: u64 },
    #[error("the installer needed more memory than it may have; install fewer packages at once")]
    Memory,
    #[error("the install was cancelled")]
    Cancelled,
    #[error("another install into the same folder is still running; try again when it is done")]
    Busy,
    /// With the end of the installer's output.
    #[error("{package} could not be installed: {said}")]
    Failed { package: String, said: String },
    #[error("cannot write packages to {place}: {cause}")]
    Keep { place: String, cause: io::Error },
    #[error(transparent)]
    Sandbox(#[from] ExecError),
}

impl PackageError {
    /// Returns a stable word for clients and metrics: a closed set.
    pub fn code(&self) -> &'static str {
        match self {
            PackageError::Denied { .. } => "PACKAGE_DENIED",
            PackageError::Unknown { .. } => "PACKAGE_UNKNOWN",
            PackageError::NoVersion { .. } => "PACKAGE_VERSION_UNKNOWN",
            PackageError::NeedsBuild { .. } => "PACKAGE_NEEDS_BUILD",
            PackageError::Unreachable { .. } => "INDEX_UNREACHABLE",
            PackageError::OtherHost { .. } => "INDEX_HOST_REFUSED",
            PackageError::NoInstaller(_) => "INSTALLER_UNAVAILABLE",
            PackageError::Settings(_) => "PACKAGES_SETTINGS",
            PackageError::TimedOut(_) => "INSTALL_TIMEOUT",
            PackageError::TooBig { .. } => "PACKAGE_TOO_BIG",
            PackageError::Memory => "INSTALL_MEMORY",
            PackageError::Cancelled => "INSTALL_CANCELLED",
            PackageError::Busy => "INSTALL_BUSY",
            PackageError::Failed { .. } => "INSTALL_FAILED",
            PackageError::Keep { .. } => "PACKAGES_UNWRITABLE",
            PackageError::Sandbox(error) => error.code(),
        }
    }
}
