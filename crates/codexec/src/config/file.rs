//! `config.toml` as people write it: everything optional, unknown keys refused, nothing checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ConfigError;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct File {
    /// Which tools a client is shown.
    pub(crate) toolset: Option<Vec<String>>,
    pub(super) limits: Limits,
    pub(super) languages: Languages,
    pub(super) python: Python,
    pub(super) node: Node,
    pub(super) files: Files,
    /// What guests find in their environment.
    pub(super) environment: BTreeMap<String, String>,
    pub(super) sandbox: Sandbox,
    pub(super) workers: Workers,
    pub(super) sessions: Sessions,
    pub(super) scripts: Scripts,
    pub(super) packages: Packages,
    pub(super) tools: Tools,
    pub(super) gateway: Gateway,
    pub(super) discovery: Discovery,
    pub(super) logs: Logs,
    pub(super) replies: Replies,
    pub(super) code_executor: CodeExecutor,
    pub(super) code_execution_mode: CodeExecutionMode,
    pub(super) mcpproxy: Mcpproxy,
    /// Read elsewhere, entry by entry: a bad one must not hide the others.
    #[serde(rename = "servers")]
    _servers: toml::Table,
    /// All of it, as it was written.
    #[serde(skip)]
    written: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Limits {
    /// What an execution gets that asks for nothing.
    pub(super) timeout_ms: Option<u64>,
    /// The most one may ask for.
    pub(super) max_timeout_ms: Option<u64>,
    pub(super) cpu_s: Option<u64>,
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
pub(super) struct Languages {
    /// Not set: all.
    pub(super) enabled: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Python {
    pub(super) interpreter: Option<PathBuf>,
    pub(super) venv: Option<PathBuf>,
    pub(super) preload: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Node {
    pub(super) interpreter: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Files {
    /// Directories that code may work in. Not set: the one codexec was started in.
    pub(super) allowed: Option<Vec<PathBuf>>,
    pub(super) writable: Option<bool>,
    /// What is started from there all the same: servers, interpreters, virtual environments.
    pub(super) run_from: Vec<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Sandbox {
    /// Layers that may be missing, by name.
    pub(super) lowered: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Workers {
    pub(super) max: Option<u64>,
    pub(super) warm: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Sessions {
    /// How many may be open at once.
    pub(super) max: Option<u64>,
    /// How long one may wait for its next execution.
    pub(super) idle_s: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Scripts {
    /// Not set: `scripts` where our own state is.
    pub(super) folder: Option<PathBuf>,
}

/// What code may install, and from where.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Packages {
    /// Not set: what the user's own pip is configured with.
    pub(super) python_index: Option<String>,
    /// Where that index keeps its files, if elsewhere.
    pub(super) python_hosts: Vec<String>,
    /// Not set: what the user's own npm is configured with.
    pub(super) npm_registry: Option<String>,
    pub(super) npm_hosts: Vec<String>,
    pub(super) ca_file: Option<PathBuf>,
    /// Whether code of a package may run while it is installed.
    pub(super) install_scripts: bool,
    /// Not set: all that are not denied.
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Vec<String>,
    pub(super) timeout_s: Option<u64>,
    pub(super) max_mib: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Tools {
    /// The tools that code may call. Not set: all. Empty: none.
    pub(super) allowed: Option<Vec<String>>,
}

/// What all servers are held to.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Gateway {
    pub(super) startup_timeout_ms: Option<u64>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_total_timeout_ms: Option<u64>,
    pub(super) max_concurrency: Option<u64>,
    pub(super) max_total_concurrency: Option<u64>,
    pub(super) queue: Option<u64>,
    pub(super) queue_wait_ms: Option<u64>,
    pub(super) trust: Option<String>,
}

/// Whose files are looked at for servers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Discovery {
    pub(super) enabled: Option<bool>,
    /// Not set: all.
    pub(super) clients: Option<Vec<String>>,
    /// Files in the directory that codexec is started in. Not set: yes.
    pub(super) project_files: Option<bool>,
    /// What becomes of the servers that these name. Not set: they wait for approval.
    pub(super) project_servers: Option<String>,
}

/// What is kept of executions, and how long.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Logs {
    pub(super) durability: Option<String>,
    pub(super) success_days: Option<u64>,
    pub(super) failure_days: Option<u64>,
    pub(super) session_days: Option<u64>,
    pub(super) max_mib: Option<u64>,
}

/// What an agent sees of a long text.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Replies {
    /// What is longer is cut.
    pub(super) max_chars: Option<u64>,
    /// What is left of its start.
    pub(super) head: Option<u64>,
    /// What is left of its end.
    pub(super) tail: Option<u64>,
}

/// What the toolset `code-executor` has beside the rest.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct CodeExecutor {
    /// What `permissions` may name.
    pub(super) projects: Vec<PathBuf>,
    /// Whether executions and discoveries are also written to `audit_log`.
    pub(super) audit: bool,
    pub(super) audit_log: Option<PathBuf>,
    /// What no request can widen. Not set: all.
    pub(super) allowed_tools: Option<Vec<String>>,
}

/// What the toolset `code-execution-mode` has beside the rest.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct CodeExecutionMode {
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_timeout_ms: Option<u64>,
    pub(super) output: Option<String>,
}

/// What the toolset `mcpproxy` has beside the rest.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct Mcpproxy {
    pub(super) enabled: Option<bool>,
    pub(super) timeout_ms: Option<u64>,
    /// 0: as many as the limits allow.
    pub(super) max_tool_calls: Option<u64>,
    pub(super) tools_limit: Option<u64>,
    /// Where scripts are that are run by name.
    pub(super) scripts: Option<PathBuf>,
}

impl File {
    /// A file that is not there says nothing, unless somebody named it.
    pub(crate) fn read(path: &Path, is_named: bool) -> Result<File, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let file: Result<File, _> = toml::from_str(&text);
                let file = file.map_err(|error| ConfigError::Parse(path.to_owned(), error))?;
                Ok(File { written: text, ..file })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named => {
                Ok(File::default())
            }
            Err(error) => Err(ConfigError::Read(path.to_owned(), error)),
        }
    }

    /// Whether files of other programs are looked at.
    pub(crate) fn discovers(&self) -> bool {
        self.discovery.enabled.unwrap_or(true)
    }

    pub(crate) fn has_project_files(&self) -> bool {
        self.discovery.project_files.unwrap_or(true)
    }

    /// The same, with other settings where this one says nothing.
    pub(crate) fn over(self, others: &toml::Table) -> Result<File, toml::de::Error> {
        if others.is_empty() {
            return Ok(self);
        }
        let mut own: toml::Table = toml::from_str(&self.written)?;
        fill(&mut own, others);
        let file: File = toml::Value::Table(own).try_into()?;
        Ok(File { written: self.written, ..file })
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
