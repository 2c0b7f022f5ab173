//! Where packages come from: what the settings say, or the user's own pip and npm.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_sandbox::ask_program;
use codexec_types::Language;

use super::address::{Host, Index, NPM_REGISTRY, PYTHON_FILES, PYTHON_INDEX};
use super::proxy::Way;
use super::{PackageError, Settings};

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) index: Index,
    pub(super) hosts: Vec<Host>,
    pub(super) certificates: Option<PathBuf>,
    pub(super) way: Way,
    /// Which settings name these, for people.
    pub(super) index_setting: &'static str,
    pub(super) hosts_setting: &'static str,
}

impl Source {
    /// `asked` are the settings of the user's own installer. Blocks.
    pub(super) fn new(
        language: Language,
        settings: &Settings,
        asked: &Asked,
    ) -> Result<Source, PackageError> {
        let is_node = language == Language::Node;
        let (named, hosts, default, index_setting, hosts_setting) = if is_node {
            let setting = ("packages.npm-registry", "packages.npm-hosts");
            (&settings.npm_registry, &settings.npm_hosts, NPM_REGISTRY, setting.0, setting.1)
        } else {
            let setting = ("packages.python-index", "packages.python-hosts");
            (&settings.python_index, &settings.python_hosts, PYTHON_INDEX, setting.0, setting.1)
        };
        let index = match (named, &asked.index) {
            (Some(index), _) => index.clone(),
            (None, Some(text)) => Index::parse(text).map_err(|error| {
                let hint = "name another with";
                PackageError::Settings(format!(
                    "the installer's own settings: {error}; {hint} `{index_setting}` in config.toml"
                ))
            })?,
            (None, None) => {
                Index::parse(default).map_err(|error| PackageError::Settings(error.to_string()))?
            }
        };
        let mut hosts = hosts.clone();
        let is_public =
            Index::parse(PYTHON_INDEX).is_ok_and(|public| public.host() == index.host());
        if is_public {
            hosts.extend(Host::parse(PYTHON_FILES));
        }
        hosts.push(index.host());
        let names: &[&str] = if is_node {
            &["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"]
        } else {
            &["PIP_CERT", "SSL_CERT_FILE"]
        };
        let usual = || settings.variable(names).map(PathBuf::from);
        let certificates =
            settings.ca_file.clone().or_else(|| asked.certificates.clone()).or_else(usual);
        let certificates = certificates.filter(|path| path.is_file() || settings.ca_file.is_some());
        let proxy = settings.variable(&["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"]);
        let straight = settings.variable(&["NO_PROXY", "no_proxy"]).unwrap_or_default();
        let way = Way::parse(proxy, straight).map_err(PackageError::Settings)?;
        // THREAT[PKG-6]: code of a package would see it.
        if settings.install_scripts && index.has_password() {
            return Err(PackageError::Settings(format!(
                "the address of {index} has a password in it, which install scripts could read; \
                 set `packages.install-scripts = false`, or name an index without one with \
                 `{index_setting}`"
            )));
        }
        Ok(Source { index, hosts, certificates, way, index_setting, hosts_setting })
    }
}

/// What the user's own installer is configured with.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    index: Option<String>,
    certificates: Option<PathBuf>,
}

impl Asked {
    pub(super) fn of_pip(python: &Path, environment: &[(String, OsString)]) -> Asked {
        let arguments = ["-I", "-B", "-m", "pip", "config", "list"];
        let said = ask_program(python, &arguments, environment, PATIENCE).unwrap_or_default();
        Asked::read_pip(&said)
    }

    /// The nearest word counts: the environment's, that for installing, that for everything.
    fn read_pip(said: &str) -> Asked {
        let value = |name: &str| {
            [":env:.", "install.", "global."].iter().find_map(|section| {
                let key = format!("{section}{name}=");
                let value = said.lines().find_map(|line| line.strip_prefix(&key))?;
                let value = value.trim().trim_matches(['\'', '"']).trim();
                (!value.is_empty()).then(|| value.to_owned())
            })
        };
        Asked { index: value("index-url"), certificates: value("cert").map(PathBuf::from) }
    }

    pub(super) fn of_npm(node: &Path, npm: &Path, environment: &[(String, OsString)]) -> Asked {
        let npm = npm.display().to_string();
        let get = |name: &str| {
            let arguments = [npm.as_str(), "config", "get", name];
            let said = ask_program(node, &arguments, environment, PATIENCE).ok()?;
            let said = said.trim().to_owned();
            (!["", "null", "undefined"].contains(&said.as_str())).then_some(said)
        };
        Asked { index: get("registry"), certificates: get("cafile").map(PathBuf::from) }
    }
}

#[cfg(test)]
mod tests;
