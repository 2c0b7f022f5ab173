//! Settings in two stages: the file as people write it, and what the code reads.

mod file;
mod files;
mod gateway;
mod guests;
mod keeping;
mod limits;
mod logs;
mod replies;
pub(crate) mod seeds;

use std::path::{Path, PathBuf};

use codexec_exec::{Python, packages};
use codexec_gateway::Client;
use codexec_sandbox::Layer;
use codexec_server::{Budget, Seeds, SessionSettings};
use codexec_types::{
    GuestPaths, InvalidPattern, Language, Policy, ServerName, ToolFilter, ToolPattern,
};

pub(crate) use file::File;
pub(crate) use gateway::{Discovery, Upstreams};
pub(crate) use logs::Logs;
pub(crate) use seeds::inherited::Inherited;

/// The settings in force: nothing optional without a meaning, nothing invalid, no serde.
#[derive(Debug)]
pub(crate) struct Config {
    /// Its tools are set when the servers are known: [`Allowed::tools_of`].
    pub(crate) policy: Policy,
    pub(crate) allowed: Allowed,
    /// Where nothing is started from.
    pub(crate) guest_paths: GuestPaths,
    pub(crate) python: Python,
    pub(crate) node: Option<PathBuf>,
    /// What guests find in their environment beside what each gets.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) lowered: Vec<Layer>,
    pub(crate) max_workers: usize,
    pub(crate) warm_workers: usize,
    pub(crate) upstreams: Upstreams,
    pub(crate) discovery: Discovery,
    pub(crate) sessions: SessionSettings,
    /// Where saved scripts are.
    pub(crate) scripts: PathBuf,
    pub(crate) packages: packages::Settings,
    pub(crate) logs: Logs,
    pub(crate) seeds: Seeds,
    /// How much of a long text an agent sees.
    pub(crate) budget: Budget,
}

/// `tools.allowed`, as written.
#[derive(Clone, Debug)]
pub(crate) struct Allowed(Option<Vec<String>>);

/// Where we were started: what settings mean depends on it.
pub(crate) struct Place {
    pub(crate) cores: usize,
    pub(crate) user_home: Option<PathBuf>,
    /// Where our own state is.
    pub(crate) state: PathBuf,
    pub(crate) here: Option<PathBuf>,
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
    #[error("`languages.enabled` names {0:?}; the languages are {all}", all = languages())]
    Language(String),
    #[error("`languages.enabled` is empty; name at least one of {all}", all = languages())]
    NoLanguage,
    #[error("`{key} = {path:?}` is not a whole path; write it from `/` or `~/` on")]
    NotWhole { key: &'static str, path: PathBuf },
    #[error("`python.interpreter` and `python.venv` are both set; keep one")]
    TwoPythons,
    #[error("`python.preload` names {0:?}; write modules like \"numpy\" or \"os.path\"")]
    Module(String),
    #[error("`environment.{name}` cannot be given to code: {why}")]
    Variable { name: String, why: &'static str },
    #[error("`gateway.trust` is {0:?}; write \"auto\", \"ask\" or \"manual\"")]
    Trust(String),
    #[error("`discovery.project-servers` is {0:?}; write \"ask\", \"allow\" or \"off\"")]
    ProjectServers(String),
    #[error("`discovery.clients` names {0:?}; the clients are {all}", all = clients())]
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
    #[error("`tools.allowed`")]
    Pattern(#[from] InvalidPattern),
}

const MAX_CODE_BYTES: usize = 1 << 20;
const MAX_INPUT_BYTES: usize = 4 << 20;

impl Config {
    pub(crate) fn new(file: &File, place: &Place) -> Result<Config, ConfigError> {
        let (limits, max_wall) = limits::limits(&file.limits)?;
        let cores = u64::try_from(place.cores).unwrap_or(u64::MAX);
        let max = limits::within("workers.max", file.workers.max, cores * 8, 1..=1_024)?;
        let warm =
            limits::within("workers.warm", file.workers.warm, (cores * 2).min(max), 0..=max)?;
        let files = files::files(&file.files, place);
        let seeds = seeds::seeds(file, max_wall, place)?;
        let projects = &seeds.executor.projects;
        Ok(Config {
            guest_paths: files::guest_paths(&file.files, &files, projects, place)?,
            policy: Policy {
                languages: guests::languages(&file.languages)?,
                code_bytes: MAX_CODE_BYTES,
                input_bytes: MAX_INPUT_BYTES,
                limits,
                max_wall,
                tools: tools(file.tools.allowed.as_deref(), &[])?,
                files,
            },
            allowed: Allowed(file.tools.allowed.clone()),
            python: guests::python(&file.python, place)?,
            node: guests::node(&file.node, place)?,
            environment: guests::environment(&file.environment, place)?,
            lowered: lowered(&file.sandbox)?,
            max_workers: usize::try_from(max).unwrap_or(1),
            warm_workers: usize::try_from(warm).unwrap_or(1),
            upstreams: gateway::upstreams(&file.gateway)?,
            discovery: gateway::discovery(&file.discovery)?,
            sessions: keeping::sessions(&file.sessions)?,
            scripts: keeping::scripts(&file.scripts, place)?,
            packages: keeping::packages(&file.packages, place)?,
            logs: logs::logs(&file.logs)?,
            seeds,
            budget: replies::budget(&file.replies)?,
        })
    }
}

impl ConfigError {
    /// The setting that is wrong, where another may have set it.
    pub(crate) fn key(&self) -> Option<&'static str> {
        match self {
            ConfigError::Range { key, .. } | ConfigError::NotWhole { key, .. } => Some(key),
            ConfigError::Trust(_) => Some("gateway.trust"),
            ConfigError::NoLanguage => Some("languages.enabled"),
            ConfigError::ExecutorPattern(_) => Some("code-executor.allowed-tools"),
            _ => None,
        }
    }
}

impl Allowed {
    /// The tools that code may call, now that it is known which servers there are: a `__` in a
    /// server's name is told from the separator by them.
    pub(crate) fn tools_of(&self, servers: &[ServerName]) -> Result<ToolFilter, ConfigError> {
        tools(self.0.as_deref(), servers)
    }
}

impl Place {
    /// `~` and `~/x` are the home directory's, where there is one.
    fn expanded(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.user_home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_owned(),
        }
    }
}

fn tools(allowed: Option<&[String]>, servers: &[ServerName]) -> Result<ToolFilter, ConfigError> {
    let Some(allowed) = allowed else { return Ok(ToolFilter::all()) };
    let patterns: Result<_, _> =
        allowed.iter().map(|text| ToolPattern::parse(text, servers)).collect();
    Ok(ToolFilter::only(patterns?))
}

fn lowered(file: &file::Sandbox) -> Result<Vec<Layer>, ConfigError> {
    let layer = |name: &String| {
        Layer::parse(name).ok_or_else(|| {
            let names: Vec<&str> = Layer::ALL.iter().map(|layer| layer.name()).collect();
            ConfigError::Layer(name.clone(), names.join(", "))
        })
    };
    file.lowered.iter().map(layer).collect()
}

fn clients() -> String {
    Client::ALL.map(Client::name).join(", ")
}

fn languages() -> String {
    Language::ALL.map(Language::name).join(", ")
}

#[cfg(test)]
mod tests;
