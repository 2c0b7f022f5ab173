//! Settings that the user has set for a seed, translated into codexec's settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codexec_server::mcp::ToolsetNames;
use serde_json::Value as Json;
use toml::{Table, Value};

use super::settings_files::{SettingsFile, SettingsFileError, read_files};
use super::table::{SeedSetting, SettingMeaning, SettingSource, settings};
use super::value_format::InvalidValue;
use crate::{Seed, UserEnvironment};

/// The value of a seed's setting, as the user set it.
pub struct SeedValue {
    pub setting: &'static SeedSetting,
    pub value: Json,
    /// The file with this value; `None` for an environment variable.
    pub file: Option<PathBuf>,
}

/// Settings from seeds, used where `config.toml` has none.
#[derive(Debug, Default)]
pub struct InheritedSettings {
    table: Table,
    /// The seed's setting from which each of codexec's settings was taken.
    origins: BTreeMap<&'static str, String>,
    /// Server files that the seeds' settings name.
    pub servers: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    #[error("{origin} {why}")]
    Value { origin: String, why: InvalidValue },
    #[error(transparent)]
    File(#[from] SettingsFileError),
}

/// The keys that count in a project's file. They narrow, or other settings bound them.
const FOR_PROJECTS: [&str; 4] = [
    "security.defaultTimeoutMs",
    "security.allowedTools",
    "executors.typescript.enabled",
    "executors.python.enabled",
];
/// Longer values are cut in messages.
const MAX_SHOWN_CHARS: usize = 80;
/// The longest timeout that MCPProxy accepts in a request.
const MAX_PROXY_MS: i64 = 600_000;
/// How long CodeExec MCP waits between SIGTERM and SIGKILL.
const CODEXEC_GRACE_S: i64 = 5;
/// The default of `limits.max-timeout-ms`.
const USUAL_MAX_MS: i64 = 300_000;

impl InheritedSettings {
    /// Reads all seeds' variables, and the files of the chosen ones if `discovers`.
    pub fn read(
        toolsets: &ToolsetNames,
        host: &UserEnvironment,
        discovers: bool,
        has_project_files: bool,
    ) -> Result<InheritedSettings, InheritError> {
        let mut inherited = InheritedSettings::default();
        for seed in Seed::ALL {
            let is_chosen = seed.is_chosen(toolsets);
            let files = match is_chosen && discovers {
                true => read_files(seed, host, has_project_files)?,
                false => Vec::new(),
            };
            for value in collect_values(seed, host, &files, is_chosen) {
                inherited.apply(&value, host)?;
            }
            if is_chosen {
                inherited.apply_defaults(seed, &files);
            }
        }
        Ok(inherited)
    }

    /// Translates one value, if it has a meaning in codexec.
    pub fn apply(
        &mut self,
        seed_value: &SeedValue,
        host: &UserEnvironment,
    ) -> Result<(), InheritError> {
        match &seed_value.setting.meaning {
            SettingMeaning::Keys(keys, format) => {
                let value = format.read(&seed_value.value, host);
                let value = value
                    .map_err(|why| InheritError::Value { origin: seed_value.describe(), why })?;
                if let Some(value) = value {
                    for key in *keys {
                        self.set(key, value.clone(), seed_value.origin());
                    }
                }
            }
            SettingMeaning::Used(_) if seed_value.setting.name == "mcpConfigPath" => {
                let path = seed_value.value.as_str().map(|path| host.expand_home(path.as_ref()));
                self.servers.extend(path.filter(|path| path.is_absolute() && path.exists()));
            }
            SettingMeaning::Used(_) | SettingMeaning::Ignored(_) => {}
            SettingMeaning::Only(accepted, why) => {
                if seed_value.value.as_str() != Some(accepted) {
                    let why = InvalidValue::Unsupported(why);
                    return Err(InheritError::Value { origin: seed_value.describe(), why });
                }
            }
        }
        Ok(())
    }

    /// Sets what follows from the chosen toolset, and from the existence of its file.
    pub(crate) fn apply_defaults(&mut self, seed: Seed, files: &[SettingsFile]) {
        match seed {
            Seed::Mcpproxy => {
                if let Some(file) = files.first() {
                    let origin = file.path.display().to_string();
                    // MCPProxy's default: disabled unless the file enables it.
                    self.set("mcpproxy.enabled", Value::Boolean(false), origin.clone());
                    let scripts = file.path.with_file_name("scripts").display().to_string();
                    self.set("mcpproxy.scripts", Value::String(scripts), origin);
                }
                let origin = "the toolset mcpproxy".to_owned();
                self.set("limits.max-timeout-ms", Value::Integer(MAX_PROXY_MS), origin);
            }
            Seed::CodeExecutionMode => {
                let most = self.get("code-execution-mode.max-timeout-ms");
                if let Some(most) = most.and_then(Value::as_integer).filter(|ms| *ms > USUAL_MAX_MS)
                {
                    let origin = "MCP_BRIDGE_MAX_TIMEOUT".to_owned();
                    self.set("limits.max-timeout-ms", Value::Integer(most), origin);
                }
            }
            Seed::Codexec => {
                let origin = "the toolset codexec".to_owned();
                self.set("limits.grace-s", Value::Integer(CODEXEC_GRACE_S), origin);
            }
            Seed::CodeExecutor => {}
        }
    }

    /// Returns the translated settings in the shape of `config.toml`.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the seed's setting from which `key` was taken.
    pub fn origin(&self, key: &str) -> Option<&str> {
        self.origins.get(key).map(String::as_str)
    }

    fn get(&self, key: &str) -> Option<&Value> {
        let (table, key) = key.split_once('.')?;
        self.table.get(table)?.get(key)
    }

    /// Sets `path` if it is not set yet. `languages.enabled` is intersected instead: every seed may
    /// remove languages.
    fn set(&mut self, path: &'static str, value: Value, origin: String) {
        let Some((name, key)) = path.split_once('.') else { return };
        let table = self.table.entry(name).or_insert_with(|| Value::Table(Table::new()));
        let Some(table) = table.as_table_mut() else { return };
        if let (Some(Value::Array(left)), Value::Array(more), "languages.enabled") =
            (table.get_mut(key), &value, path)
        {
            left.retain(|language| more.contains(language));
            return;
        }
        if table.contains_key(key) {
            return;
        }
        table.insert(key.to_owned(), value);
        self.origins.insert(path, origin);
    }
}

/// Collects all values of one seed, variables first. Bare variables count if it `is_chosen`.
pub(crate) fn collect_values(
    seed: Seed,
    host: &UserEnvironment,
    files: &[SettingsFile],
    is_chosen: bool,
) -> Vec<SeedValue> {
    let counts =
        |source| source == SettingSource::Variable || (source == SettingSource::Bare && is_chosen);
    let all = settings(seed);
    let variables = all.iter().filter(|setting| counts(setting.source)).filter_map(|setting| {
        let value = (host.variable)(setting.name).filter(|value| !value.is_empty())?;
        Some(SeedValue { setting, value: Json::String(value), file: None })
    });
    let keys = files.iter().flat_map(|file| {
        let is_open =
            |setting: &&SeedSetting| !file.is_project || FOR_PROJECTS.contains(&setting.name);
        let keys =
            all.iter().filter(|setting| setting.source == SettingSource::Key).filter(is_open);
        keys.filter_map(|setting| {
            let value = value_at(&file.value, setting.name)?.clone();
            Some(SeedValue { setting, value, file: Some(file.path.clone()) })
        })
    });
    variables.chain(keys).collect()
}

/// Returns the value at the path `a.b.c`; null counts as missing.
fn value_at<'a>(value: &'a Json, path: &str) -> Option<&'a Json> {
    let found = path.split('.').try_fold(value, |value, key| value.get(key));
    found.filter(|value| !value.is_null())
}

impl SeedValue {
    /// Returns the variable, or the file and key.
    pub fn origin(&self) -> String {
        match &self.file {
            None => self.setting.name.to_owned(),
            Some(file) => format!("{}: `{}`", file.display(), self.setting.name),
        }
    }

    /// Returns the origin with the value, for messages.
    pub fn describe(&self) -> String {
        let value = match &self.value {
            Json::String(text) => format!("{text:?}"),
            other => other.to_string(),
        };
        let name = self.setting.name;
        let mut value: String = value.chars().take(MAX_SHOWN_CHARS).collect();
        if let (Json::String(text), true) = (&self.value, self.setting.source.is_variable())
            && text.len() < MAX_SHOWN_CHARS
            && text.chars().all(|c| c.is_ascii_graphic())
        {
            value.clone_from(text);
        }
        match &self.file {
            None => format!("`{name} = {value}`"),
            Some(file) => format!("{}: `{name} = {value}`", file.display()),
        }
    }
}

#[cfg(test)]
mod tests;
