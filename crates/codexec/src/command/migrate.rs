//! What another system's user has set, as a `config.toml` of ours. Nothing is changed.

mod page;
mod servers;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use codexec_gateway::{Parsed, read_text};
use codexec_server::Toolset;
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::cli::migrate::Migrate;
use crate::config::Place;
use crate::config::seeds::files::{SettingsFile, files, required};
use crate::config::seeds::inherited::{Given, Inherited, given};
use crate::config::seeds::table::{Here, SYSTEMS, Source, settings};
use crate::servers::Sources;

/// As large as our own file may be.
const MAX_ENV_FILE_BYTES: u64 = 1 << 20;
/// Keys that nobody knows are told no more often than this.
const MAX_UNKNOWN: usize = 100;

pub(super) fn run(args: Migrate, place: &Place) -> anyhow::Result<ExitCode> {
    let text = match args.from {
        None => page::page(),
        Some(from) => Migration::read(from.toolset(), args.path, place)?.text(),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// All that was found of one system.
struct Migration {
    system: Toolset,
    settings: Table,
    servers: Table,
    /// What its user should know, one a line.
    notes: Vec<String>,
}

impl Migration {
    fn read(system: Toolset, path: Option<PathBuf>, place: &Place) -> anyhow::Result<Migration> {
        let path = path.map(|path| std::path::absolute(&path).unwrap_or(path));
        let mut all = Vec::new();
        let files = match (&path, system) {
            (Some(path), Toolset::Codexec) => {
                all.extend(assigned(path)?);
                Vec::new()
            }
            // A file of servers only, in JSON or TOML.
            (Some(_), Toolset::CodeExecutionMode) => Vec::new(),
            (Some(path), _) => vec![required(path)?],
            (None, _) => files(system, place, true)?,
        };
        all.extend(given(system, place, &files, true));
        let mut notes: Vec<String> = Vec::new();
        let mut inherited = Inherited::default();
        for given in &all {
            if let Err(error) = inherited.take(given, place) {
                notes.push(format!("left out: {error}"));
            }
            if let Here::Nothing(why) = &given.setting.here {
                notes.push(format!("{} has no meaning here: {why}", given.origin()));
            }
        }
        inherited.complete(system, &files);
        for file in &files {
            notes.extend(unknown(system, file));
        }
        let is_alone = path.is_some();
        let named = path.filter(|_| system != Toolset::Codexec);
        let named = named.map_or_else(|| inherited.servers.clone(), |path| vec![path]);
        let named = named.into_iter().filter(|path| has_servers(path, &files));
        let parsed = Sources::of_system(crate::servers::system(system), named.collect(), is_alone)?;
        let settings = inherited.table().clone();
        let mut migration = Migration { system, settings, servers: Table::new(), notes };
        migration.add_servers(&parsed);
        Ok(migration)
    }

    fn add_servers(&mut self, parsed: &Parsed) {
        for found in &parsed.servers {
            let name = found.config.name.to_string();
            let (table, notes) = servers::table(found);
            self.notes.extend(notes.into_iter().map(|note| format!("server {name}: {note}")));
            if let Some(why) = &found.off {
                self.notes.push(format!("server {name} is not used: {why}"));
            }
            self.servers.insert(name, Value::Table(table));
        }
        self.notes.extend(parsed.problems.iter().map(ToString::to_string));
    }

    /// Comments first, so that the whole is a file of ours.
    fn text(&self) -> String {
        let title = SYSTEMS.iter().find(|(system, _)| *system == self.system);
        let title = title.map_or_else(|| self.system.name(), |(_, title)| title);
        let name = self.system.name();
        let mut lines = vec![
            format!("What you have set for {title}, as codexec has it: $CODEXEC_HOME/config.toml."),
            "Nothing was changed. The client starts codexec with this entry:".to_owned(),
            format!(
                "  \"codexec\": {{\"command\": \"codexec\", \"args\": [\"serve\", \"--toolset\", \
                 \"{name}\"]}}"
            ),
        ];
        if self.system == Toolset::CodeExecutor {
            let found = "Servers in ~/.claude.json and ./.mcp.json are found where they are.";
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

/// A line that stays a comment, whatever a file has in it.
fn comment(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    format!("# {}\n", plain.trim_end())
}

/// Whether a file that was named is also one of servers.
fn has_servers(path: &Path, files: &[SettingsFile]) -> bool {
    let known = files.iter().find(|file| file.path == path);
    known.is_none_or(|file| file.value.get("mcpServers").is_some())
}

/// CodeExec MCP: lines of `NAME=value`.
fn assigned(path: &Path) -> anyhow::Result<Vec<Given>> {
    let text = read_text(path, MAX_ENV_FILE_BYTES).context(path.display().to_string())?;
    let mut all = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        let value = value.split(" #").next().unwrap_or(value).trim().trim_matches(['"', '\'']);
        let setting = settings(Toolset::Codexec).iter().find(|known| known.name == name.trim());
        if let (Some(setting), false) = (setting, value.is_empty()) {
            let value = Json::String(value.to_owned());
            all.push(Given { setting, value, file: Some(path.to_owned()) });
        }
    }
    Ok(all)
}

/// Keys of their file that are not in the table.
fn unknown(system: Toolset, file: &SettingsFile) -> Vec<String> {
    let known: BTreeSet<&str> = settings(system)
        .iter()
        .filter(|setting| setting.source == Source::Key)
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
        .map(|path| format!("{}: `{}` is not known here", file.path.display(), shown(path)))
        .collect();
    if left > 0 {
        notes.push(format!("{}: {left} more keys are not known here", file.path.display()));
    }
    notes
}
