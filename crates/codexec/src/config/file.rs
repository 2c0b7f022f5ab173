//! `config.toml` as people write it: every key optional, unknown keys refused, values unchecked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ConfigError;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct ConfigFile {
    /// The tools that clients see.
    pub(crate) toolset: Option<Vec<String>>,
    pub(super) limits: LimitsSection,
    pub(super) languages: LanguagesSection,
    pub(super) python: PythonSection,
    pub(super) node: NodeSection,
    pub(super) files: FilesSection,
    /// Environment variables for guests.
    pub(super) environment: BTreeMap<String, String>,
    pub(super) sandbox: SandboxSection,
    pub(super) workers: WorkersSection,
    pub(super) sessions: SessionsSection,
    pub(super) scripts: ScriptsSection,
    pub(super) packages: PackagesSection,
    pub(super) tools: ToolsSection,
    pub(super) code: CodeSection,
    pub(super) gateway: GatewaySection,
    pub(super) discovery: DiscoverySection,
    pub(super) logs: LogsSection,
    pub(super) replies: RepliesSection,
    pub(super) http: HttpSection,
    pub(super) otlp: OtlpSection,
    pub(super) code_executor: CodeExecutorSection,
    pub(super) code_execution_mode: CodeExecutionModeSection,
    pub(super) mcpproxy: McpproxySection,
    /// Parsed elsewhere, entry by entry, so that an invalid entry does not hide the others.
    #[serde(rename = "servers")]
    _servers: toml::Table,
    /// The text of the whole file.
    #[serde(skip)]
    written: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct LimitsSection {
    /// The default for an execution that does not ask for a time.
    pub(super) timeout_ms: Option<u64>,
    /// The most that a request may ask for.
    pub(super) max_timeout_ms: Option<u64>,
    pub(super) cpu_s: Option<u64>,
    pub(super) grace_s: Option<u64>,
    pub(super) memory_mib: Option<u64>,
    pub(super) processes: Option<u64>,
    pub(super) open_files: Option<u64>,
    pub(super) disk_mib: Option<u64>,
    pub(super) disk_files: Option<u64>,
    pub(super) output_kib: Option<u64>,
    pub(super) tool_calls: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct LanguagesSection {
    /// Not set: all.
    pub(super) enabled: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct PythonSection {
    pub(super) interpreter: Option<PathBuf>,
    pub(super) venv: Option<PathBuf>,
    pub(super) preload: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct NodeSection {
    pub(super) interpreter: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct FilesSection {
    /// Directories that code may work in. Not set: the directory in which codexec was started.
    pub(super) allowed: Option<Vec<PathBuf>>,
    pub(super) writable: Option<bool>,
    /// Bounds what one execution, or one session between two commits, may write there.
    pub(super) max_mib: Option<u64>,
    pub(super) max_files: Option<u64>,
    /// Names that are committed although programs run or obey such files automatically.
    pub(super) let_through: Option<Vec<String>>,
    /// Paths below guest-writable directories from which servers and interpreters may start.
    pub(super) run_from: Vec<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct SandboxSection {
    /// Layers that may be missing, by name.
    pub(super) lowered: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct WorkersSection {
    pub(super) max: Option<u64>,
    pub(super) warm: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct SessionsSection {
    /// The most sessions that may be open at once.
    pub(super) max: Option<u64>,
    /// The most of these that code may have opened.
    pub(super) max_by_code: Option<u64>,
    /// How long a session may be idle.
    pub(super) idle_s: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct ScriptsSection {
    /// Not set: `scripts` in the state directory.
    pub(super) folder: Option<PathBuf>,
}

/// Which packages code may install, and from where.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct PackagesSection {
    /// Not set: the index that the user's pip is configured with.
    pub(super) python_index: Option<String>,
    /// Other hosts on which that index keeps its files.
    pub(super) python_hosts: Vec<String>,
    /// Not set: the registry that the user's npm is configured with.
    pub(super) npm_registry: Option<String>,
    pub(super) npm_hosts: Vec<String>,
    pub(super) ca_file: Option<PathBuf>,
    /// True if a package's install scripts may run.
    pub(super) install_scripts: bool,
    /// Not set: all packages that are not denied.
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Vec<String>,
    pub(super) timeout_s: Option<u64>,
    pub(super) max_mib: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct ToolsSection {
    /// The tools that code may call. Not set: all. Empty: none.
    pub(super) allowed: Option<Vec<String>>,
}

/// The grants of code on codexec's sessions, scripts and logs.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct CodeSection {
    /// Grants beyond what code itself opened, saved or ran.
    pub(super) may: Vec<String>,
}

/// Defaults for all MCP servers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct GatewaySection {
    pub(super) startup_timeout_ms: Option<u64>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_total_timeout_ms: Option<u64>,
    pub(super) max_concurrency: Option<u64>,
    pub(super) max_total_concurrency: Option<u64>,
    pub(super) queue: Option<u64>,
    pub(super) queue_wait_ms: Option<u64>,
    pub(super) trust: Option<String>,
}

/// The clients whose files are searched for servers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct DiscoverySection {
    pub(super) enabled: Option<bool>,
    /// Not set: all.
    pub(super) clients: Option<Vec<String>>,
    /// True to read files in the directory in which codexec is started. Not set: true.
    pub(super) project_files: Option<bool>,
    /// How servers in these files are treated. Not set: they wait for approval.
    pub(super) project_servers: Option<String>,
}

/// How executions are stored, and for how long.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct LogsSection {
    pub(super) durability: Option<String>,
    pub(super) success_days: Option<u64>,
    pub(super) failure_days: Option<u64>,
    pub(super) session_days: Option<u64>,
    pub(super) max_mib: Option<u64>,
}

/// How much of a long text a reply shows.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct RepliesSection {
    /// Longer texts are cut.
    pub(super) max_chars: Option<u64>,
    /// How much of the start is shown.
    pub(super) head: Option<u64>,
    /// How much of the end is shown.
    pub(super) tail: Option<u64>,
}

/// How clients reach codexec over HTTP.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct HttpSection {
    /// The most connections of one address.
    pub(super) connections_per_peer: Option<u64>,
    /// Names of this server, besides its addresses.
    pub(super) hosts: Vec<String>,
    /// Balancers whose `X-Forwarded-For` counts.
    pub(super) trusted_proxies: Vec<String>,
    /// The most requests of one token.
    pub(super) requests_per_minute: Option<u64>,
    pub(super) max_body_mib: Option<u64>,
    pub(super) header_timeout_s: Option<u64>,
    pub(super) body_timeout_s: Option<u64>,
    pub(super) write_timeout_s: Option<u64>,
    /// How long executions may continue when the server stops.
    pub(super) grace_s: Option<u64>,
    pub(super) tls_certificate: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
    /// True to serve `/metrics` without a token.
    pub(super) public_metrics: bool,
}

/// Where traces go; nowhere without an endpoint.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct OtlpSection {
    /// The receiver's address; `/v1/traces` is added to one without a path.
    pub(super) endpoint: Option<String>,
    /// Headers by name, each `env:NAME`.
    pub(super) headers: BTreeMap<String, String>,
}

/// Settings of the toolset `code-executor`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct CodeExecutorSection {
    /// Directories that `permissions` in a request may name.
    pub(super) projects: Vec<PathBuf>,
    /// True to also write executions and discoveries to `audit_log`.
    pub(super) audit: bool,
    pub(super) audit_log: Option<PathBuf>,
    /// The maximum number of discoveries of one client in a minute, and that of its calls.
    pub(super) rate_limit: Option<u64>,
    /// The tools that requests may allow. Not set: all.
    pub(super) allowed_tools: Option<Vec<String>>,
}

/// Settings of the toolset `code-execution-mode`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct CodeExecutionModeSection {
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_timeout_ms: Option<u64>,
    pub(super) output: Option<String>,
}

/// Settings of the toolset `mcpproxy`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct McpproxySection {
    pub(super) enabled: Option<bool>,
    pub(super) timeout_ms: Option<u64>,
    /// 0: only the limit in `limits.tool-calls`.
    pub(super) max_tool_calls: Option<u64>,
    pub(super) tools_limit: Option<u64>,
    /// The folder of scripts that are run by name.
    pub(super) scripts: Option<PathBuf>,
}

impl ConfigFile {
    /// Reads the file. A missing file has no settings, unless the user named it (`is_named`).
    pub(crate) fn read(path: &Path, is_named: bool) -> Result<ConfigFile, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let file: Result<ConfigFile, _> = toml::from_str(&text);
                let file = file.map_err(|error| ConfigError::Parse(path.to_owned(), error))?;
                Ok(ConfigFile { written: text, ..file })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named => {
                Ok(ConfigFile::default())
            }
            Err(error) => Err(ConfigError::Read(path.to_owned(), error)),
        }
    }

    /// Returns true if server files of other programs are read.
    pub(crate) fn discovers(&self) -> bool {
        self.discovery.enabled.unwrap_or(true)
    }

    pub(crate) fn has_project_files(&self) -> bool {
        self.discovery.project_files.unwrap_or(true)
    }

    /// Returns this file, with settings from `others` where this file has none.
    pub(crate) fn over(self, others: &toml::Table) -> Result<ConfigFile, toml::de::Error> {
        if others.is_empty() {
            return Ok(self);
        }
        let mut own: toml::Table = toml::from_str(&self.written)?;
        fill(&mut own, others);
        let file: ConfigFile = toml::Value::Table(own).try_into()?;
        Ok(ConfigFile { written: self.written, ..file })
    }
}

fn fill(own: &mut toml::Table, others: &toml::Table) {
    for (key, other) in others {
        match (own.get_mut(key), other) {
            (Some(toml::Value::Table(own)), toml::Value::Table(other)) => fill(own, other),
            (Some(_), _) => {}
            (None, _) => {
                own.insert(key.clone(), other.clone());
            }
        }
    }
}
