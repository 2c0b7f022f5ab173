//! What the users of the systems that we replace have set, as our own settings would say it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codexec_server::{Toolset, Toolsets};
use serde_json::Value as Json;
use toml::{Table, Value};

use super::Place;
use super::files::{BadFile, SettingsFile, files};
use super::form::BadValue;
use super::table::{Here, SYSTEMS, Setting, Source, settings};

/// A setting of theirs that is set.
pub(crate) struct Given {
    pub(crate) setting: &'static Setting,
    pub(crate) value: Json,
    /// The file that has it, if it is not a variable.
    pub(crate) file: Option<PathBuf>,
}

/// Settings that count where ours say nothing.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    table: Table,
    /// Which of theirs each of ours was taken from.
    origins: BTreeMap<&'static str, String>,
    /// Files that name servers.
    pub(crate) servers: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum InheritError {
    #[error("{origin} {why}")]
    Value { origin: String, why: BadValue },
    #[error(transparent)]
    File(#[from] BadFile),
}

/// What a project's file may say: it takes away, or is bounded by what others say.
const FOR_PROJECTS: [&str; 4] = [
    "security.defaultTimeoutMs",
    "security.allowedTools",
    "executors.typescript.enabled",
    "executors.python.enabled",
];
/// A value is shown no longer than this.
const SHOWN_CHARS: usize = 80;
/// The longest that a request of this toolset may ask for.
const MAX_PROXY_MS: i64 = 600_000;
/// What our own settings have.
const USUAL_MAX_MS: i64 = 300_000;

impl Inherited {
    /// `discovers`: whether files of other programs are looked at.
    pub(crate) fn read(
        toolsets: &Toolsets,
        place: &Place,
        discovers: bool,
        has_project_files: bool,
    ) -> Result<Inherited, InheritError> {
        let mut inherited = Inherited::default();
        for (system, _) in SYSTEMS {
            let is_chosen = toolsets.has(system);
            let files = match is_chosen && discovers {
                true => files(system, place, has_project_files)?,
                false => Vec::new(),
            };
            for given in given(system, place, &files, is_chosen) {
                inherited.take(&given, place)?;
            }
            if is_chosen {
                inherited.complete(system, &files);
            }
        }
        Ok(inherited)
    }

    /// What it is here, if it is anything.
    pub(crate) fn take(&mut self, given: &Given, place: &Place) -> Result<(), InheritError> {
        match &given.setting.here {
            Here::Keys(keys, form) => {
                let value = form.read(&given.value, place);
                let value =
                    value.map_err(|why| InheritError::Value { origin: given.shown(), why })?;
                if let Some(value) = value {
                    for key in *keys {
                        self.set(key, value.clone(), given.origin());
                    }
                }
            }
            Here::Used(_) if given.setting.name == "mcpConfigPath" => {
                let path = given.value.as_str().map(|path| place.expanded(path.as_ref()));
                self.servers.extend(path.filter(|path| path.is_absolute() && path.exists()));
            }
            Here::Used(_) | Here::Nothing(_) => {}
        }
        Ok(())
    }

    /// What follows from a toolset and from a file that is there, whatever is in it.
    pub(crate) fn complete(&mut self, system: Toolset, files: &[SettingsFile]) {
        match system {
            Toolset::Mcpproxy => {
                if let Some(file) = files.first() {
                    let origin = file.path.display().to_string();
                    // It has to be enabled where there is a file that could.
                    self.set("mcpproxy.enabled", Value::Boolean(false), origin.clone());
                    let scripts = file.path.with_file_name("scripts").display().to_string();
                    self.set("mcpproxy.scripts", Value::String(scripts), origin);
                }
                let origin = "the toolset mcpproxy".to_owned();
                self.set("limits.max-timeout-ms", Value::Integer(MAX_PROXY_MS), origin);
            }
            Toolset::CodeExecutionMode => {
                let most = self.get("code-execution-mode.max-timeout-ms");
                if let Some(most) = most.and_then(Value::as_integer).filter(|ms| *ms > USUAL_MAX_MS)
                {
                    let origin = "MCP_BRIDGE_MAX_TIMEOUT".to_owned();
                    self.set("limits.max-timeout-ms", Value::Integer(most), origin);
                }
            }
            Toolset::Codexec | Toolset::CodeExecutor | Toolset::Compact | Toolset::Direct => {}
        }
    }

    /// Settings of ours, as a file would have them.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// What a setting of ours was taken from.
    pub(crate) fn origin(&self, key: &str) -> Option<&str> {
        self.origins.get(key).map(String::as_str)
    }

    fn get(&self, key: &str) -> Option<&Value> {
        let (table, key) = key.split_once('.')?;
        self.table.get(table)?.get(key)
    }

    /// The first word counts, except that every system may take languages away.
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

/// All of one system that are set; variables first. Bare ones count if it `is_chosen`.
pub(crate) fn given(
    system: Toolset,
    place: &Place,
    files: &[SettingsFile],
    is_chosen: bool,
) -> Vec<Given> {
    let counts = |source| source == Source::Variable || (source == Source::Bare && is_chosen);
    let all = settings(system);
    let variables = all.iter().filter(|setting| counts(setting.source)).filter_map(|setting| {
        let value = (place.variable)(setting.name).filter(|value| !value.is_empty())?;
        Some(Given { setting, value: Json::String(value), file: None })
    });
    let keys = files.iter().flat_map(|file| {
        let is_open = |setting: &&Setting| !file.is_project || FOR_PROJECTS.contains(&setting.name);
        let keys = all.iter().filter(|setting| setting.source == Source::Key).filter(is_open);
        keys.filter_map(|setting| {
            let value = at(&file.value, setting.name)?.clone();
            Some(Given { setting, value, file: Some(file.path.clone()) })
        })
    });
    variables.chain(keys).collect()
}

/// What stands at `a.b.c`; null is nothing.
fn at<'a>(value: &'a Json, path: &str) -> Option<&'a Json> {
    let found = path.split('.').try_fold(value, |value, key| value.get(key));
    found.filter(|value| !value.is_null())
}

impl Given {
    /// Where it stands.
    pub(crate) fn origin(&self) -> String {
        match &self.file {
            None => self.setting.name.to_owned(),
            Some(file) => format!("{}: `{}`", file.display(), self.setting.name),
        }
    }

    /// The same with its value.
    pub(crate) fn shown(&self) -> String {
        let value = match &self.value {
            Json::String(text) => format!("{text:?}"),
            other => other.to_string(),
        };
        let name = self.setting.name;
        let mut value: String = value.chars().take(SHOWN_CHARS).collect();
        if let (Json::String(text), true) = (&self.value, self.setting.source.is_variable())
            && text.len() < SHOWN_CHARS
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
