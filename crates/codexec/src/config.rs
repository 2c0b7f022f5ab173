//! Settings in two stages: [`ConfigFile`] as people write it, and the validated [`Config`].

mod file;
mod files;
mod gateway;
mod guests;
mod http;
mod limits;
mod logs;
mod otlp;
mod persistence;
mod replies;
mod seeds;

use std::path::{Path, PathBuf};

use codexec_compat::UserEnvironment;
use codexec_compat::settings::Seeds;
use codexec_exec::{GuestSettings, packages};
use codexec_mcp_config::{ConfigOwner, DiscoverySettings};
use codexec_sandbox::Layer;
use codexec_server::{SessionSettings, TextBudget};
use codexec_types::{
    Grant, Grants, GuestPaths, InvalidPattern, Language, Policy, ServerName, ToolFilter,
    ToolPattern,
};

pub(crate) use file::ConfigFile;
pub(crate) use gateway::UpstreamDefaults;
pub(crate) use logs::LogSettings;

/// The validated settings, with all defaults filled in.
#[derive(Debug)]
pub(crate) struct Config {
    /// Its tool filter is set when the servers are known: [`AllowedTools::filter_for`].
    pub(crate) policy: Policy,
    pub(crate) allowed: AllowedTools,
    /// The directories that guests may write. No program is started from them.
    pub(crate) guest_paths: GuestPaths,
    pub(crate) guests: GuestSettings,
    pub(crate) lowered: Vec<Layer>,
    /// Limits for what code may write into a directory of the user's.
    pub(crate) commit_limits: codexec_exec::FileSettings,
    pub(crate) max_workers: usize,
    pub(crate) warm_workers: usize,
    pub(crate) upstreams: UpstreamDefaults,
    pub(crate) discovery: DiscoverySettings,
    pub(crate) sessions: SessionSettings,
    /// The folder of saved scripts.
    pub(crate) scripts: PathBuf,
    pub(crate) packages: packages::PackageSettings,
    pub(crate) logs: LogSettings,
    pub(crate) seeds: Seeds,
    /// How much of a long text a reply shows.
    pub(crate) budget: TextBudget,
    pub(crate) http: codexec_http::HttpSettings,
    /// Where traces go, if anywhere.
    pub(crate) otlp: Option<codexec_telemetry::ExportSettings>,
}

/// The patterns of `tools.allowed`, as written.
#[derive(Clone, Debug)]
pub(crate) struct AllowedTools(Option<Vec<String>>);

/// The environment in which codexec was started. The meaning of some settings depends on it.
pub(crate) struct HostEnvironment {
    pub(crate) cores: usize,
    pub(crate) user_home: Option<PathBuf>,
    /// The directory for codexec's own state.
    pub(crate) state_dir: PathBuf,
    pub(crate) current_dir: Option<PathBuf>,
    pub(crate) variable: fn(&str) -> Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{}", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    #[error("{}", .0.display())]
    Parse(PathBuf, #[source] toml::de::Error),
    #[error("`{key} = {value}` is out of range; it must be {min} to {max}")]
    Range { key: &'static str, value: u64, min: u64, max: u64 },
    #[error("`sandbox.lowered` names {0:?}; the layers are {1}")]
    Layer(String, String),
    #[error("`languages.enabled` names {0:?}; the languages are {all}", all = language_names())]
    Language(String),
    #[error("`languages.enabled` is empty; name at least one of {all}", all = language_names())]
    NoLanguage,
    #[error("`{key} = {path:?}` is not an absolute path; start it with `/` or `~/`")]
    RelativePath { key: &'static str, path: PathBuf },
    #[error("`python.interpreter` and `python.venv` are both set; keep one")]
    TwoPythons,
    #[error("`python.preload` names {0:?}; write modules like \"numpy\" or \"os.path\"")]
    Module(String),
    #[error(
        "`files.let-through` names {0:?}; write names without `/`, like \".venv\" or \"*.pth\""
    )]
    LetThrough(String),
    #[error("`environment.{name}` cannot be given to code: {why}")]
    Variable { name: String, why: &'static str },
    #[error("`gateway.trust` is {0:?}; write \"auto\", \"ask\" or \"manual\"")]
    Trust(String),
    #[error("`discovery.project-servers` is {0:?}; write \"ask\", \"allow\" or \"off\"")]
    ProjectServers(String),
    #[error("`discovery.clients` names {0:?}; the clients are {all}", all = client_names())]
    Client(String),
    #[error("`{key}`: {error}")]
    Address { key: &'static str, error: packages::InvalidAddress },
    #[error(
        "`{key}` names {text:?}; write packages like \"pandas\", \"pip:pandas\", \"npm:@scope/*\""
    )]
    Package { key: &'static str, text: String },
    #[error("`logs.durability` is {0:?}; write \"process\" or \"power\"")]
    Durability(String),
    #[error("`code-execution-mode.output` is {0:?}; write \"compact\" or \"toon\"")]
    Output(String),
    #[error("`code-executor.allowed-tools`: {0}")]
    ExecutorPattern(InvalidPattern),
    #[error("`code.may` names {0:?}; write {all}", all = grant_names())]
    Grant(String),
    #[error(
        "`http.trusted-proxies` names {0:?}; write addresses like \"10.0.0.1\" or \"10.0.0.0/8\""
    )]
    TrustedProxy(String),
    #[error("`otlp.headers.{0}` must be \"env:NAME\", and that variable must be set")]
    OtlpHeader(String),
    #[error("`http.tls-certificate` and `http.tls-key` belong together; set both or none")]
    HalfTls,
    #[error("`tools.allowed`")]
    Pattern(#[from] InvalidPattern),
}

const MAX_CODE_BYTES: usize = 1 << 20;
const MAX_INPUT_BYTES: usize = 4 << 20;

impl Config {
    pub(crate) fn new(file: &ConfigFile, host: &HostEnvironment) -> Result<Config, ConfigError> {
        let (limits, max_wall) = limits::limits(&file.limits)?;
        let cores = u64::try_from(host.cores).unwrap_or(u64::MAX);
        let max = limits::within("workers.max", file.workers.max, cores * 8, 1..=1_024)?;
        let warm =
            limits::within("workers.warm", file.workers.warm, (cores * 2).min(max), 0..=max)?;
        let files = files::files(&file.files, host);
        let seeds = seeds::seeds(file, max_wall, host)?;
        let projects = &seeds.executor.projects;
        Ok(Config {
            guest_paths: files::guest_paths(&file.files, &files, projects, host)?,
            policy: Policy {
                languages: guests::languages(&file.languages)?,
                code_bytes: MAX_CODE_BYTES,
                input_bytes: MAX_INPUT_BYTES,
                limits,
                max_wall,
                tools: parse_tool_filter(file.tools.allowed.as_deref(), &[])?,
                grants: parse_grants(&file.code)?,
                files,
            },
            allowed: AllowedTools(file.tools.allowed.clone()),
            guests: guests::guests(file, host)?,
            lowered: parse_lowered(&file.sandbox)?,
            commit_limits: files::commit_limits(&file.files)?,
            max_workers: usize::try_from(max).unwrap_or(1),
            warm_workers: usize::try_from(warm).unwrap_or(1),
            upstreams: gateway::upstreams(&file.gateway)?,
            discovery: gateway::discovery(&file.discovery)?,
            sessions: persistence::sessions(&file.sessions)?,
            scripts: persistence::scripts(&file.scripts, host)?,
            packages: persistence::packages(&file.packages, host)?,
            logs: logs::logs(&file.logs)?,
            seeds,
            budget: replies::budget(&file.replies)?,
            http: http::http(&file.http, host)?,
            otlp: otlp::otlp(&file.otlp, host)?,
        })
    }
}

impl ConfigError {
    /// Returns the invalid setting, if a system that codexec replaces may have set it.
    pub(crate) fn key(&self) -> Option<&'static str> {
        match self {
            ConfigError::Range { key, .. } | ConfigError::RelativePath { key, .. } => Some(key),
            ConfigError::Trust(_) => Some("gateway.trust"),
            ConfigError::NoLanguage => Some("languages.enabled"),
            ConfigError::ExecutorPattern(_) => Some("code-executor.allowed-tools"),
            _ => None,
        }
    }
}

impl AllowedTools {
    /// Returns the filter of tools that code may call. Parsing needs the server names, because a
    /// server's name may contain the separator `__`.
    pub(crate) fn filter_for(&self, servers: &[ServerName]) -> Result<ToolFilter, ConfigError> {
        parse_tool_filter(self.0.as_deref(), servers)
    }
}

impl HostEnvironment {
    /// Returns the part on which the settings of replaced systems depend.
    pub(crate) fn user(&self) -> UserEnvironment {
        let (home, current_dir) = (self.user_home.clone(), self.current_dir.clone());
        UserEnvironment { home, current_dir, variable: self.variable }
    }

    /// Replaces a leading `~` by the home directory, if there is one.
    fn expand_home(&self, path: &Path) -> PathBuf {
        self.user().expand_home(path)
    }
}

fn parse_tool_filter(
    allowed: Option<&[String]>,
    servers: &[ServerName],
) -> Result<ToolFilter, ConfigError> {
    let Some(allowed) = allowed else { return Ok(ToolFilter::all()) };
    let patterns: Result<_, _> =
        allowed.iter().map(|text| ToolPattern::parse(text, servers)).collect();
    Ok(ToolFilter::only(patterns?))
}

fn parse_grants(file: &file::CodeSection) -> Result<Grants, ConfigError> {
    let grant = |name: &String| Grant::parse(name).ok_or_else(|| ConfigError::Grant(name.clone()));
    file.may.iter().map(grant).collect()
}

fn parse_lowered(file: &file::SandboxSection) -> Result<Vec<Layer>, ConfigError> {
    let layer = |name: &String| {
        Layer::parse(name).ok_or_else(|| {
            let names: Vec<&str> = Layer::ALL.iter().map(|layer| layer.name()).collect();
            ConfigError::Layer(name.clone(), names.join(", "))
        })
    };
    file.lowered.iter().map(layer).collect()
}

fn grant_names() -> String {
    Grant::ALL.map(Grant::name).join(", ")
}

fn client_names() -> String {
    ConfigOwner::ALL.map(ConfigOwner::name).join(", ")
}

fn language_names() -> String {
    Language::ALL.map(Language::name).join(", ")
}

#[cfg(test)]
mod tests;
