//! The supported installers, their command lines, and the meaning of their errors.

mod npm;
mod pip;
mod uv;

use std::path::{Path, PathBuf};

use codexec_sandbox::{PROXY_PORT, ProgramCommand};
use codexec_types::{Language, PackageName};

use super::installer_output::InstallerOutput;
use super::source::PackageSource;

/// The working directory of an installer, which also receives its result.
const WORK: &str = "/box/work";
/// Paths of our own files in the installer's rootfs.
pub(super) const CERTIFICATES: &str = "/opt/codexec/certificates.pem";
pub(super) const CONSTRAINTS: &str = "/opt/codexec/constraints.txt";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InstallerKind {
    Pip { python: PathBuf },
    Uv { python: PathBuf, uv: PathBuf },
    Npm { node: PathBuf, npm: PathBuf },
}

/// A request to an installer.
pub(super) struct InstallRequest<'a> {
    pub(super) package: &'a PackageName,
    /// For npm: the other packages to keep, as they were requested.
    pub(super) others: Vec<String>,
    /// For pip: there is a constraints file with the installed versions.
    pub(super) is_constrained: bool,
    pub(super) runs_scripts: bool,
    pub(super) source: &'a PackageSource,
}

/// The meaning of an installer's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstallFailure {
    /// The index does not have the package, or has no prebuilt version where building is not
    /// allowed.
    NotFound,
    /// The index has the package, but not in the requested version.
    NoVersion,
    /// The package conflicts with installed ones.
    Conflict,
    Certificate,
    Other,
}

impl InstallerKind {
    pub(super) fn install_command(&self, request: &InstallRequest<'_>) -> ProgramCommand {
        match self {
            InstallerKind::Pip { python } => pip::install_command(python, request),
            InstallerKind::Uv { python, uv } => uv::install_command(python, uv, request),
            InstallerKind::Npm { node, npm } => npm::install_command(node, npm, request),
        }
    }

    /// Returns the command that lists all versions, prebuilt or not, if the installer has one.
    pub(super) fn versions_command(&self, request: &InstallRequest<'_>) -> Option<ProgramCommand> {
        match self {
            InstallerKind::Pip { python } => Some(pip::versions_command(python, request)),
            InstallerKind::Uv { .. } | InstallerKind::Npm { .. } => None,
        }
    }

    pub(super) fn classify_failure(
        &self,
        output: &InstallerOutput,
        package: &PackageName,
    ) -> InstallFailure {
        let text = output.text();
        if text.contains("CERTIFICATE_VERIFY_FAILED")
            || text.contains("SELF_SIGNED_CERT")
            || text.contains("UNABLE_TO_GET_ISSUER_CERT")
            || text.contains("UnknownIssuer")
        {
            return InstallFailure::Certificate;
        }
        match self {
            InstallerKind::Pip { .. } => pip::classify_failure(&text, package),
            InstallerKind::Uv { .. } => uv::classify_failure(&text, package),
            InstallerKind::Npm { .. } => npm::classify_failure(output.out(), package),
        }
    }

    /// Returns the directory that the installer writes packages to.
    pub(super) fn output_dir(&self) -> &'static str {
        match self {
            InstallerKind::Pip { .. } | InstallerKind::Uv { .. } => "python",
            InstallerKind::Npm { .. } => "node_modules",
        }
    }
}

/// True if a version is in the output of the `versions` command.
pub(super) fn is_offered(said: &str, version: &str) -> bool {
    pip::is_offered(said, version)
}

/// THREAT[LEAK-2]: contains nothing of our own environment or of the guests' environment.
fn installer_environment(
    program: &Path,
    source: &PackageSource,
    language: Language,
) -> Vec<(String, String)> {
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    let usual = "/usr/local/bin:/usr/bin:/bin";
    let path = match program.parent() {
        Some(own) => format!("{}:{usual}", own.display()),
        None => usual.to_owned(),
    };
    let mut environment: Vec<(String, String)> = [
        ("PATH", path.as_str()),
        ("HOME", "/box/home"),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
        ("TMPDIR", "/tmp"),
        ("HTTP_PROXY", &proxy),
        ("HTTPS_PROXY", &proxy),
        ("http_proxy", &proxy),
        ("https_proxy", &proxy),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    if source.certificates.is_some() {
        let name = match language {
            Language::Node => "NODE_EXTRA_CA_CERTS",
            _ => "SSL_CERT_FILE",
        };
        environment.push((name.to_owned(), CERTIFICATES.to_owned()));
    }
    environment
}

fn to_strings<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests;
