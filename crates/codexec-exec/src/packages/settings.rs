use std::path::PathBuf;
use std::time::Duration;

use codexec_types::{Language, PackageName};

use super::address::{Host, Index};

/// Where packages come from, where they go, and which are let in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the packages for everybody are kept. Without it there are none.
    pub home: Option<PathBuf>,
    /// By default what the user's own pip is configured with.
    pub python_index: Option<Index>,
    /// What else pip may reach: many indexes keep their files on another host.
    pub python_hosts: Vec<Host>,
    /// By default what the user's own npm is configured with.
    pub npm_registry: Option<Index>,
    pub npm_hosts: Vec<Host>,
    /// Certificates to trust, in one file, where the usual ones do not do.
    pub ca_file: Option<PathBuf>,
    /// Whether code of a package may run while it is installed.
    pub install_scripts: bool,
    /// `None`: whatever is not denied.
    pub allow: Option<Vec<Pattern>>,
    /// Holds for what a package brings along, too.
    pub deny: Vec<Pattern>,
    pub timeout: Duration,
    /// How big all packages of one folder may be together.
    pub max_bytes: u64,
    /// What our own environment has under the names in [`VARIABLES`].
    pub environment: Vec<(String, String)>,
}

/// The variables by which people tell pip, npm and everybody else about indexes, certificates and
/// proxies.
pub const VARIABLES: &[&str] = &[
    "PIP_CERT",
    "PIP_CONFIG_FILE",
    "PIP_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "NPM_CONFIG_CAFILE",
    "npm_config_registry",
    "npm_config_userconfig",
    "npm_config_cafile",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "NO_PROXY",
    "no_proxy",
    "XDG_CONFIG_HOME",
];

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            home: None,
            python_index: None,
            python_hosts: Vec::new(),
            npm_registry: None,
            npm_hosts: Vec::new(),
            ca_file: None,
            install_scripts: false,
            allow: None,
            deny: Vec::new(),
            timeout: Duration::from_secs(300),
            max_bytes: 1 << 30,
            environment: Vec::new(),
        }
    }
}

impl Settings {
    pub(super) fn variable(&self, names: &[&str]) -> Option<&str> {
        let value = |name: &&str| {
            let found = self.environment.iter().find(|(known, _)| known == name)?;
            Some(found.1.as_str()).filter(|value| !value.is_empty())
        };
        names.iter().find_map(value)
    }

    /// Which setting lets this package in no further, if one does.
    pub(super) fn refusal(&self, package: &PackageName) -> Option<&'static str> {
        if self.denies(package) {
            return Some("`packages.deny` in config.toml names it");
        }
        let is_allowed =
            |allowed: &Vec<Pattern>| allowed.iter().any(|pattern| pattern.fits(package));
        let is_let_in = self.allow.as_ref().is_none_or(is_allowed);
        (!is_let_in).then_some("`packages.allow` in config.toml does not name it")
    }

    pub(super) fn denies(&self, package: &PackageName) -> bool {
        self.deny.iter().any(|pattern| pattern.fits(package))
    }
}

/// One entry of the lists of packages: a name, for pip and npm alike or, with `pip:` or `npm:`
/// before it, for one of them; a `*` at its end is any rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    language: Option<Language>,
    start: String,
    is_whole: bool,
}

impl Pattern {
    /// `None` for what could never be a package's name.
    pub fn parse(text: &str) -> Option<Pattern> {
        let (language, name) = match text.split_once(':') {
            Some(("pip", name)) => (Some(Language::Python), name),
            Some(("npm", name)) => (Some(Language::Node), name),
            Some(_) => return None,
            None => (None, text),
        };
        let (start, is_whole) = match name.strip_suffix('*') {
            Some(start) => (start, false),
            None => (name, true),
        };
        let is_fine = |b: u8| b.is_ascii_alphanumeric() || b"@/._-".contains(&b);
        let is_name = start.bytes().all(is_fine) && (!is_whole || !start.is_empty());
        is_name.then(|| Pattern { language, start: start.to_ascii_lowercase(), is_whole })
    }

    fn fits(&self, package: &PackageName) -> bool {
        if self.language.is_some_and(|language| language != package.language()) {
            return false;
        }
        let (key, start) = match package.language() {
            Language::Python => (package.key(), self.start.replace(['_', '.'], "-")),
            _ => (package.key(), self.start.clone()),
        };
        if self.is_whole { key == start } else { key.starts_with(&start) }
    }
}

#[cfg(test)]
mod tests;
