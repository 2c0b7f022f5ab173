//! Where packages come from: the settings, or the configuration of the user's own pip and npm.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_sandbox::query_program;
use codexec_types::Language;
use serde::Deserialize;

use super::address::{IndexHost, PackageIndex};
use super::proxy::ProxyRoute;
use super::{PackageError, PackageSettings};

const QUERY_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub(super) struct PackageSource {
    pub(super) index: PackageIndex,
    pub(super) hosts: Vec<IndexHost>,
    pub(super) certificates: Option<PathBuf>,
    pub(super) route: ProxyRoute,
    /// The names of the settings for these, for error messages.
    pub(super) index_setting: &'static str,
    pub(super) hosts_setting: &'static str,
}

impl PackageSource {
    /// Combines our settings with those of the user's own installer. Blocks.
    pub(super) fn new(
        language: Language,
        settings: &PackageSettings,
        config: &InstallerConfig,
    ) -> Result<PackageSource, PackageError> {
        let is_node = language == Language::Node;
        let (named, hosts, index_setting, hosts_setting) = if is_node {
            let (index, hosts) = (&settings.npm_registry, &settings.npm_hosts);
            (index, hosts, "packages.npm-registry", "packages.npm-hosts")
        } else {
            let (index, hosts) = (&settings.python_index, &settings.python_hosts);
            (index, hosts, "packages.python-index", "packages.python-hosts")
        };
        let usual = config.public.as_ref().map(|public| &public.index);
        let index = match (named, config.index.as_ref().or(usual)) {
            (Some(index), _) => index.clone(),
            (None, Some(text)) => PackageIndex::parse(text).map_err(|error| {
                PackageError::Settings(format!(
                    "the installer's own settings: {error}; name another with `{index_setting}` \
                     in config.toml"
                ))
            })?,
            (None, None) => {
                return Err(PackageError::Settings(format!(
                    "the installer does not report which index it uses; name one with \
                     `{index_setting}` in config.toml"
                )));
            }
        };
        let mut hosts = hosts.clone();
        hosts.push(index.host());
        if let Some(DefaultIndex { index: public, files }) = &config.public {
            let is_public =
                PackageIndex::parse(public).is_ok_and(|public| public.host() == index.host());
            hosts.extend(IndexHost::parse(files).ok().filter(|_| is_public));
        }
        let names: &[&str] = if is_node {
            &["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"]
        } else {
            &["PIP_CERT", "SSL_CERT_FILE"]
        };
        let usual = || settings.variable(names).map(PathBuf::from);
        let certificates =
            settings.ca_file.clone().or_else(|| config.certificates.clone()).or_else(usual);
        let certificates = certificates.filter(|path| path.is_file() || settings.ca_file.is_some());
        let proxy = settings.variable(&["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"]);
        let straight = settings.variable(&["NO_PROXY", "no_proxy"]).unwrap_or_default();
        let route = ProxyRoute::parse(proxy, straight).map_err(PackageError::Settings)?;
        // THREAT[PKG-6]: install scripts of a package could read the password.
        if settings.install_scripts && index.has_password() {
            return Err(PackageError::Settings(format!(
                "the address of {index} has a password in it, which install scripts could read; \
                 set `packages.install-scripts = false`, or name an index without one with \
                 `{index_setting}`"
            )));
        }
        Ok(PackageSource { index, hosts, certificates, route, index_setting, hosts_setting })
    }
}

/// The configuration of the user's own installer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InstallerConfig {
    index: Option<String>,
    certificates: Option<PathBuf>,
    public: Option<DefaultIndex>,
}

/// The installer's default index, and the host of its files.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct DefaultIndex {
    index: String,
    #[serde(default)]
    files: String,
}

const QUERY_PIP_CODE: &str = "import json
from pip._internal.models.index import PyPI as public
print(json.dumps({'index': public.simple_url, 'files': public.file_storage_domain}))";

impl InstallerConfig {
    pub(super) fn query_pip(python: &Path, environment: &[(String, OsString)]) -> InstallerConfig {
        let ask = |arguments: &[&str]| {
            query_program(python, arguments, environment, QUERY_TIMEOUT).unwrap_or_default()
        };
        let config = InstallerConfig::parse_pip(&ask(&["-I", "-B", "-m", "pip", "config", "list"]));
        let public = serde_json::from_str(ask(&["-I", "-B", "-c", QUERY_PIP_CODE]).trim()).ok();
        InstallerConfig { public, ..config }
    }

    /// Queries uv, which knows its index, but not the host of the index's files.
    pub(super) fn query_uv(uv: &Path, environment: &[(String, OsString)]) -> InstallerConfig {
        let arguments = ["pip", "install", "--help", "--color", "never"];
        let help = query_program(uv, &arguments, environment, QUERY_TIMEOUT).unwrap_or_default();
        let default = help.split_once("by default: <").and_then(|(_, rest)| rest.split_once('>'));
        let index = default.map(|(index, _)| index.to_owned());
        InstallerConfig { index, ..InstallerConfig::default() }
    }

    /// Parses `pip config list`. The most specific section wins: environment, then install, then
    /// global.
    fn parse_pip(output: &str) -> InstallerConfig {
        let value = |name: &str| {
            [":env:.", "install.", "global."].iter().find_map(|section| {
                let key = format!("{section}{name}=");
                let value = output.lines().find_map(|line| line.strip_prefix(&key))?;
                let value = value.trim().trim_matches(['\'', '"']).trim();
                (!value.is_empty()).then(|| value.to_owned())
            })
        };
        let certificates = value("cert").map(PathBuf::from);
        InstallerConfig { index: value("index-url"), certificates, public: None }
    }

    pub(super) fn query_npm(
        node: &Path,
        npm: &Path,
        environment: &[(String, OsString)],
    ) -> InstallerConfig {
        let npm = npm.display().to_string();
        let get = |name: &str| {
            let arguments = [npm.as_str(), "config", "get", name];
            let output = query_program(node, &arguments, environment, QUERY_TIMEOUT).ok()?;
            let output = output.trim().to_owned();
            (!["", "null", "undefined"].contains(&output.as_str())).then_some(output)
        };
        let certificates = get("cafile").map(PathBuf::from);
        InstallerConfig { index: get("registry"), certificates, public: None }
    }
}

#[cfg(test)]
mod tests;
