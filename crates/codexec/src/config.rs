//! Settings in two stages: the file as people write it, and what the code reads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_sandbox::Layer;
use codexec_types::{
    InvalidPattern, Language, Limits, Policy, ServerName, ToolFilter, ToolPattern,
};
use serde::Deserialize;

/// `config.toml` as written: everything optional, unknown keys refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct File {
    limits: LimitsFile,
    sandbox: SandboxFile,
    workers: WorkersFile,
    tools: ToolsFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct LimitsFile {
    /// What an execution gets that asks for nothing.
    timeout_ms: Option<u64>,
    /// The most one may ask for.
    max_timeout_ms: Option<u64>,
    memory_mib: Option<u64>,
    output_kib: Option<u64>,
    tool_calls: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct SandboxFile {
    /// Layers that may be missing, by name.
    lowered: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct WorkersFile {
    max: Option<usize>,
    warm: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct ToolsFile {
    /// The tools that code may call. Not set: all. Empty: none.
    allowed: Option<Vec<String>>,
}

/// The settings in force: nothing optional, nothing invalid, no serde.
#[derive(Debug)]
pub(crate) struct Config {
    /// Its tools are set when the servers are known: [`Config::tools_of`].
    pub(crate) policy: Policy,
    allowed: Option<Vec<String>>,
    pub(crate) lowered: Vec<Layer>,
    pub(crate) max_workers: usize,
    pub(crate) warm_workers: usize,
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
    #[error("`tools.allowed`")]
    Pattern(#[from] InvalidPattern),
}

const MAX_CODE_BYTES: usize = 1 << 20;
const MAX_INPUT_BYTES: usize = 4 << 20;

impl File {
    /// A file that is not there says nothing, unless somebody named it.
    pub(crate) fn read(path: &Path, is_named: bool) -> Result<File, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                toml::from_str(&text).map_err(|error| ConfigError::Parse(path.to_owned(), error))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named => {
                Ok(File::default())
            }
            Err(error) => Err(ConfigError::Read(path.to_owned(), error)),
        }
    }
}

impl Config {
    pub(crate) fn new(file: &File, cores: usize) -> Result<Config, ConfigError> {
        let limits = &file.limits;
        let default = Limits::DEFAULT;
        let max_ms =
            within("limits.max-timeout-ms", limits.max_timeout_ms, 300_000, 1..=86_400_000)?;
        let wall_ms =
            within("limits.timeout-ms", limits.timeout_ms, 30_000.min(max_ms), 1..=max_ms)?;
        let memory = within(
            "limits.memory-mib",
            limits.memory_mib,
            default.memory_bytes >> 20,
            32..=65_536,
        )?;
        let output =
            within("limits.output-kib", limits.output_kib, default.output_bytes >> 10, 1..=65_536)?;
        let calls = within(
            "limits.tool-calls",
            limits.tool_calls.map(u64::from),
            default.tool_calls.into(),
            0..=100_000,
        )?;
        let as_u64 = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let max =
            within("workers.max", file.workers.max.map(as_u64), as_u64(cores * 8), 1..=1_024)?;
        let warm = within(
            "workers.warm",
            file.workers.warm.map(as_u64),
            as_u64(cores * 2).min(max),
            0..=max,
        )?;
        Ok(Config {
            policy: Policy {
                languages: Language::ALL.to_vec(),
                code_bytes: MAX_CODE_BYTES,
                input_bytes: MAX_INPUT_BYTES,
                limits: Limits {
                    wall: Duration::from_millis(wall_ms),
                    memory_bytes: memory << 20,
                    output_bytes: output << 10,
                    tool_calls: u32::try_from(calls).unwrap_or(u32::MAX),
                    ..default
                },
                max_wall: Duration::from_millis(max_ms),
                tools: tools(file.tools.allowed.as_deref(), &[])?,
                files: codexec_types::Files::default(),
            },
            allowed: file.tools.allowed.clone(),
            lowered: lowered(&file.sandbox)?,
            max_workers: usize::try_from(max).unwrap_or(1),
            warm_workers: usize::try_from(warm).unwrap_or(1),
        })
    }
}

impl Config {
    /// The tools that code may call, now that it is known which servers there are: a `__` in a
    /// server's name is told from the separator by them.
    pub(crate) fn tools_of(&self, servers: &[ServerName]) -> Result<ToolFilter, ConfigError> {
        tools(self.allowed.as_deref(), servers)
    }
}

fn within(
    key: &'static str,
    value: Option<u64>,
    default: u64,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, ConfigError> {
    let value = value.unwrap_or(default);
    if range.contains(&value) {
        return Ok(value);
    }
    Err(ConfigError::Range { key, value, min: *range.start(), max: *range.end() })
}

fn tools(allowed: Option<&[String]>, servers: &[ServerName]) -> Result<ToolFilter, ConfigError> {
    let Some(allowed) = allowed else { return Ok(ToolFilter::all()) };
    let patterns: Result<_, _> =
        allowed.iter().map(|text| ToolPattern::parse(text, servers)).collect();
    Ok(ToolFilter::only(patterns?))
}

fn lowered(file: &SandboxFile) -> Result<Vec<Layer>, ConfigError> {
    let layer = |name: &String| {
        Layer::parse(name).ok_or_else(|| {
            let names: Vec<&str> = Layer::ALL.iter().map(|layer| layer.name()).collect();
            ConfigError::Layer(name.clone(), names.join(", "))
        })
    };
    file.lowered.iter().map(layer).collect()
}

#[cfg(test)]
mod tests;
