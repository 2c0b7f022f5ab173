//! The supported installers, their command lines, and the meaning of their errors.

mod npm;
mod pip;
mod uv;

use std::path::{Path, PathBuf};

use codexec_sandbox::{Command, PROXY_PORT};
use codexec_types::{Language, PackageName};

use super::chatter::Chatter;
use super::source::Source;

/// The working directory of an installer, which also receives its result.
const WORK: &str = "/box/work";
/// Paths of our own files in the installer's rootfs.
pub(super) const CERTIFICATES: &str = "/opt/codexec/certificates.pem";
pub(super) const CONSTRAINTS: &str = "/opt/codexec/constraints.txt";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Pip { python: PathBuf },
    Uv { python: PathBuf, uv: PathBuf },
    Npm { node: PathBuf, npm: PathBuf },
}

/// A request to an installer.
pub(super) struct Wish<'a> {
    pub(super) package: &'a PackageName,
    /// For npm: the other packages to keep, as they were requested.
    pub(super) others: Vec<String>,
    /// For pip: there is a constraints file with the installed versions.
    pub(super) is_constrained: bool,
    pub(super) runs_scripts: bool,
    pub(super) source: &'a Source,
}

/// The meaning of an installer's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
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

impl Tool {
    pub(super) fn install(&self, wish: &Wish<'_>) -> Command {
        match self {
            Tool::Pip { python } => pip::install(python, wish),
            Tool::Uv { python, uv } => uv::install(python, uv, wish),
            Tool::Npm { node, npm } => npm::install(node, npm, wish),
        }
    }

    /// Returns the command that lists all versions, prebuilt or not, if the installer has one.
    pub(super) fn versions(&self, wish: &Wish<'_>) -> Option<Command> {
        match self {
            Tool::Pip { python } => Some(pip::versions(python, wish)),
            Tool::Uv { .. } | Tool::Npm { .. } => None,
        }
    }

    pub(super) fn failure(&self, said: &Chatter, package: &PackageName) -> Failure {
        let text = said.text();
        if text.contains("CERTIFICATE_VERIFY_FAILED")
            || text.contains("SELF_SIGNED_CERT")
            || text.contains("UNABLE_TO_GET_ISSUER_CERT")
            || text.contains("UnknownIssuer")
        {
            return Failure::Certificate;
        }
        match self {
            Tool::Pip { .. } => pip::failure(&text, package),
            Tool::Uv { .. } => uv::failure(&text, package),
            Tool::Npm { .. } => npm::failure(said.out(), package),
        }
    }

    /// Returns the directory that the installer writes packages to.
    pub(super) fn leaves(&self) -> &'static str {
        match self {
            Tool::Pip { .. } | Tool::Uv { .. } => "python",
            Tool::Npm { .. } => "node_modules",
        }
    }
}

/// True if a version is in the output of the `versions` command.
pub(super) fn is_offered(said: &str, version: &str) -> bool {
    pip::is_offered(said, version)
}

/// THREAT[LEAK-2]: contains nothing of our own environment or of the guests' environment.
fn environment(program: &Path, source: &Source, language: Language) -> Vec<(String, String)> {
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

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests;
