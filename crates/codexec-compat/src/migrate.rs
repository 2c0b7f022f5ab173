//! Formats a user's settings and servers of a seed as a `config.toml`.

mod page;
mod servers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use codexec_files::read_text;
use codexec_mcp_config::{ConfigOwner, ParsedConfig};
use serde_json::Value as Json;
use toml::{Table, Value};

pub use self::page::settings_page;
pub use self::servers::server_table;
use crate::settings::{
    InheritedSettings, SeedValue, SettingMeaning, SettingSource, SettingsFile, SettingsFileError,
    collect_values, read_files, read_required, settings,
};
use crate::{Seed, UserEnvironment};

/// The size limit of a file with environment variables.
const MAX_ENV_FILE_BYTES: u64 = 1 << 20;
/// The most unknown keys that are reported.
const MAX_UNKNOWN: usize = 100;

/// The settings and servers of one seed.
pub struct Migration {
    seed: Seed,
    settings: Table,
    server_files: SeedServerFiles,
    servers: Table,
    /// Notes for the user, one per line.
    notes: Vec<String>,
}

/// The files that name the MCP servers of one seed.
#[derive(Clone, Debug)]
pub struct SeedServerFiles {
    /// The owner of the seed's usual files, if there are any.
    pub owner: Option<ConfigOwner>,
    pub named: Vec<PathBuf>,
    /// True if only the named files count.
    pub is_alone: bool,
}

/// The reason why the settings of a seed cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error("{}", .0.display())]
    EnvFile(PathBuf, #[source] std::io::Error),
    #[error(transparent)]
    SettingsFile(#[from] SettingsFileError),
}

impl Migration {
    /// Reads the settings. The servers are added by [`Migration::add_servers`].
    pub fn read(
        seed: Seed,
        path: Option<PathBuf>,
        host: &UserEnvironment,
    ) -> Result<Migration, MigrationError> {
        let path = path.map(|path| std::path::absolute(&path).unwrap_or(path));
        let mut all = Vec::new();
        let files = match (&path, seed) {
            (Some(path), Seed::Codexec) => {
                all.extend(read_env_file(path)?);
                Vec::new()
            }
            // This seed's file has only servers, in JSON or TOML.
            (Some(_), Seed::CodeExecutionMode) => Vec::new(),
            (Some(path), _) => vec![read_required(path)?],
            (None, _) => read_files(seed, host, true)?,
        };
        all.extend(collect_values(seed, host, &files, true));
        let mut notes: Vec<String> = Vec::new();
        let mut inherited = InheritedSettings::default();
        for value in &all {
            if let Err(error) = inherited.apply(value, host) {
                notes.push(format!("ignored: {error}"));
                continue;
            }
            if let SettingMeaning::Ignored(why) | SettingMeaning::Only(_, why) =
                &value.setting.meaning
            {
                notes.push(format!("{} has no effect in codexec: {why}", value.origin()));
            }
        }
        inherited.apply_defaults(seed, &files);
        for file in &files {
            notes.extend(unknown_key_notes(seed, file));
        }
        let is_alone = path.is_some();
        let named = path.filter(|_| seed != Seed::Codexec);
        let named = named.map_or_else(|| inherited.servers.clone(), |path| vec![path]);
        let named = named.into_iter().filter(|path| has_servers(path, &files));
        let server_files =
            SeedServerFiles { owner: seed.config_owner(), named: named.collect(), is_alone };
        let settings = inherited.table().clone();
        Ok(Migration { seed, settings, server_files, servers: Table::new(), notes })
    }

    /// Returns the files whose servers are to be added.
    pub fn server_files(&self) -> SeedServerFiles {
        self.server_files.clone()
    }

    pub fn add_servers(&mut self, parsed: &ParsedConfig) {
        for found in &parsed.servers {
            let name = found.config.name.to_string();
            let (table, notes) = servers::server_table(found);
            self.notes.extend(notes.into_iter().map(|note| format!("server {name}: {note}")));
            if let Some(why) = &found.off {
                self.notes.push(format!("server {name} is written as disabled: {why}"));
            }
            self.servers.insert(name, Value::Table(table));
        }
        self.notes.extend(parsed.problems.iter().map(ToString::to_string));
    }

    /// Formats a valid `config.toml`, with the notes as comments at the top.
    pub fn text(&self) -> String {
        let (title, name) = (self.seed.title(), self.seed.toolset());
        let mut lines = vec![
            format!("Your settings for {title} as $CODEXEC_HOME/config.toml."),
            "No file was changed. Use this entry in your client:".to_owned(),
            format!(
                "  \"codexec\": {{\"command\": \"codexec\", \"args\": [\"serve\", \"--toolset\", \
                 \"{name}\"]}}"
            ),
        ];
        if self.seed == Seed::CodeExecutor {
            let found = "codexec also reads the servers in ~/.claude.json and ./.mcp.json.";
            lines.push(found.to_owned());
        }
        lines.extend(self.notes.iter().cloned());
        let comments: String = lines.iter().map(|line| comment(line)).collect();
        let mut all = Table::new();
        all.insert("toolset".to_owned(), Value::Array(vec![Value::from(name)]));
        all.extend(self.settings.clone());
        if !self.servers.is_empty() {
            all.insert("servers".to_owned(), Value::Table(self.servers.clone()));
        }
        format!("{comments}\n{}", toml::to_string(&all).unwrap_or_default())
    }
}

/// Formats one comment line; control characters, such as newlines, are replaced.
fn comment(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    format!("# {}\n", plain.trim_end())
}

/// Returns true if a named file may contain servers.
fn has_servers(path: &Path, files: &[SettingsFile]) -> bool {
    let known = files.iter().find(|file| file.path == path);
    known.is_none_or(|file| file.value.get("mcpServers").is_some())
}

/// Reads an env file of CodeExec MCP: lines of `NAME=value`.
fn read_env_file(path: &Path) -> Result<Vec<SeedValue>, MigrationError> {
    let text = read_text(path, MAX_ENV_FILE_BYTES)
        .map_err(|error| MigrationError::EnvFile(path.to_owned(), error))?;
    let mut all = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        let value = value.split(" #").next().unwrap_or(value).trim().trim_matches(['"', '\'']);
        let setting = settings(Seed::Codexec).iter().find(|known| known.name == name.trim());
        if let (Some(setting), false) = (setting, value.is_empty()) {
            let value = Json::String(value.to_owned());
            all.push(SeedValue { setting, value, file: Some(path.to_owned()) });
        }
    }
    Ok(all)
}

/// Returns notes about keys of a seed's file that are not in the table.
fn unknown_key_notes(seed: Seed, file: &SettingsFile) -> Vec<String> {
    let known: BTreeSet<&str> = settings(seed)
        .iter()
        .filter(|setting| setting.source == SettingSource::Key)
        .map(|setting| setting.name)
        .collect();
    let mut found = Vec::new();
    let mut open: Vec<(String, &Json)> = vec![(String::new(), &file.value)];
    while let Some((path, value)) = open.pop() {
        for (key, value) in value.as_object().into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let is_above = known.iter().any(|name| name.starts_with(&format!("{path}.")));
            if known.contains(path.as_str()) || (path == "mcpServers") {
                continue;
            }
            if is_above && value.is_object() {
                open.push((path, value));
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    let left = found.len().saturating_sub(MAX_UNKNOWN);
    found.truncate(MAX_UNKNOWN);
    let shown = |path: &String| -> String { path.chars().take(80).collect() };
    let mut notes: Vec<String> = found
        .iter()
        .map(|path| format!("{}: unknown key `{}`", file.path.display(), shown(path)))
        .collect();
    if left > 0 {
        notes.push(format!("{}: {left} more unknown keys", file.path.display()));
    }
    notes
}
