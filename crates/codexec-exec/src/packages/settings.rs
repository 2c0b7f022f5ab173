use std::path::PathBuf;
use std::time::Duration;

use codexec_types::{Language, PackageName};

use super::address::{IndexHost, PackageIndex};

/// Where packages come from, where they are installed, and which are allowed.
#[derive(Clone, Debug)]
pub struct PackageSettings {
    /// The directory of the shared packages. Without it there are none.
    pub home: Option<PathBuf>,
    /// Defaults to the configuration of the user's own pip.
    pub python_index: Option<PackageIndex>,
    /// Further hosts that pip may reach: many indexes keep their files on another host.
    pub python_hosts: Vec<IndexHost>,
    /// Defaults to the configuration of the user's own npm.
    pub npm_registry: Option<PackageIndex>,
    pub npm_hosts: Vec<IndexHost>,
    /// A file with CA certificates, if the system's are not enough.
    pub ca_file: Option<PathBuf>,
    /// Allows packages to run code while they are installed.
    pub install_scripts: bool,
    /// `None` allows every package that is not denied.
    pub allow: Option<Vec<PackagePattern>>,
    /// Applies to dependencies, too.
    pub deny: Vec<PackagePattern>,
    pub timeout: Duration,
    /// Maximum total size of one packages folder.
    pub max_bytes: u64,
    /// The variables of our own environment that are named in [`ENVIRONMENT_VARIABLES`].
    pub environment: Vec<(String, String)>,
}

/// Environment variables that configure indexes, certificates and proxies for pip, npm and others.
pub const ENVIRONMENT_VARIABLES: &[&str] = &[
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

impl Default for PackageSettings {
    fn default() -> PackageSettings {
        PackageSettings {
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

impl PackageSettings {
    pub(super) fn variable(&self, names: &[&str]) -> Option<&str> {
        let value = |name: &&str| {
            let found = self.environment.iter().find(|(known, _)| known == name)?;
            Some(found.1.as_str()).filter(|value| !value.is_empty())
        };
        names.iter().find_map(value)
    }

    /// Returns why a package is refused, if it is.
    pub(super) fn refusal_reason(&self, package: &PackageName) -> Option<&'static str> {
        if self.denies(package) {
            return Some("`packages.deny` in config.toml names it");
        }
        let is_allowed =
            |allowed: &Vec<PackagePattern>| allowed.iter().any(|pattern| pattern.matches(package));
        let is_let_in = self.allow.as_ref().is_none_or(is_allowed);
        (!is_let_in).then_some("`packages.allow` in config.toml does not name it")
    }

    pub(super) fn denies(&self, package: &PackageName) -> bool {
        self.deny.iter().any(|pattern| pattern.matches(package))
    }
}

/// An entry of an allow or deny list: a package name for pip and npm alike, or for one of them with
/// the prefix `pip:` or `npm:`. A trailing `*` matches any suffix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackagePattern {
    language: Option<Language>,
    start: String,
    is_whole: bool,
}

impl PackagePattern {
    /// Returns `None` for a text that cannot match any package name.
    pub fn parse(text: &str) -> Option<PackagePattern> {
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
        is_name.then(|| PackagePattern { language, start: start.to_ascii_lowercase(), is_whole })
    }

    fn matches(&self, package: &PackageName) -> bool {
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
