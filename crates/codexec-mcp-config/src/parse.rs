//! Parses the config files that define MCP servers: codexec's own file and other programs' files.
//! Does no I/O: the caller passes in the text and, through [`ConfigEnv`], everything outside of it.

use std::path::{Path, PathBuf};

use codexec_types::ServerName;

use crate::{
    ClaudeApprovals, ConfigOwner, ConfigScope, PendingEntry, ProjectServers, ServerConfig,
    ServerOptions,
    entry::ConfigEntry,
    merge,
    node::ConfigNode,
    pending,
    section::{Section, find_section},
    syntax::{Syntax, SyntaxError},
};

/// Maximum number of servers read from one file; the rest are ignored.
const MAX_SERVERS: usize = 1_000;
/// Maximum number of problems reported for one file.
const MAX_PROBLEMS: usize = 100;
/// Why a server is off that the file itself disables.
pub(crate) const DISABLED_IN_FILE: &str = "it is disabled in that file";

/// The result of parsing one file. An invalid entry never hides a valid one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedConfig {
    pub servers: Vec<DiscoveredServer>,
    /// Servers that start only after the user's approval. Set by [`merge_configs`]; until then
    /// they are among `servers`.
    pub waiting: Vec<DiscoveredServer>,
    /// Settings of codexec's own file for servers of any file.
    pub tunings: Vec<ServerTuning>,
    pub problems: Vec<ConfigProblem>,
    /// The file as a whole could not be parsed; its previous result stays in effect.
    pub is_broken: bool,
}

/// A server, and the file that defines it.
#[derive(Clone, Debug, PartialEq)]
pub struct DiscoveredServer {
    pub config: ServerConfig,
    pub client: ConfigOwner,
    pub line: u32,
    /// Why the server is disabled; `None` if it is enabled.
    pub off: Option<String>,
    /// The entry that the user must approve before the server starts.
    pub pending: Option<PendingEntry>,
}

/// Settings of codexec's own file for a server that any file may define.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTuning {
    pub name: ServerName,
    pub narrow: ServerOptions,
    /// The value of `enabled`, if the entry has it.
    pub is_on: Option<bool>,
    pub file: PathBuf,
    pub line: u32,
    /// The entry has neither `command` nor `url`, so another file must define the server.
    pub is_alone: bool,
}

/// A problem in a config file, reported to the user.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}:{line}: {what}", .file.display())]
pub struct ConfigProblem {
    pub file: PathBuf,
    pub line: u32,
    pub client: ConfigOwner,
    /// The server's name as written, cut to 80 characters; `None` if the problem concerns the
    /// whole file.
    pub server: Option<String>,
    /// The description, as a sentence.
    pub what: String,
    pub effect: ProblemEffect,
}

/// The consequence of a [`ConfigProblem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemEffect {
    /// The file or the server is not used.
    LeftOut,
    /// The file or the server is used regardless.
    Kept,
}

/// The config file that is parsed: its path, its client, and the rules that apply to it.
pub(crate) struct ConfigSource<'a> {
    pub(crate) source: &'a Path,
    pub(crate) client: ConfigOwner,
    pub(crate) reach: ConfigScope,
    pub(crate) approvals: &'a ClaudeApprovals,
    pub(crate) project_servers: ProjectServers,
    /// True if guests can write the file.
    pub(crate) is_guest_writable: bool,
    pub(crate) world: ConfigEnv<'a>,
}

/// The environment that a config file's entries may refer to.
#[derive(Clone, Copy)]
pub(crate) struct ConfigEnv<'a> {
    pub(crate) home: Option<&'a Path>,
    /// The directory that codexec was started in.
    pub(crate) here: Option<&'a Path>,
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a short file that an entry refers to.
    pub(crate) text_of: &'a dyn Fn(&Path) -> Option<String>,
    /// Returns true if the command is codexec's own binary.
    pub(crate) is_own_program: &'a dyn Fn(&str) -> bool,
}

/// A parsed config file, from which several things can be read.
pub struct ConfigDocument {
    pub(crate) root: Result<ConfigNode, SyntaxError>,
    syntax: Syntax,
}

impl ConfigDocument {
    /// Returns the maximum size of such a file.
    pub fn max_bytes(client: ConfigOwner, path: &Path) -> u64 {
        Syntax::of(client, path).max_bytes()
    }

    /// Parses the text in the syntax that this client uses.
    pub fn new(text: &str, client: ConfigOwner) -> ConfigDocument {
        ConfigDocument::from_file(Path::new(""), text, client)
    }

    /// Parses the text of the file at `path`; a file named by the user may also be TOML.
    pub fn from_file(path: &Path, text: &str, client: ConfigOwner) -> ConfigDocument {
        let syntax = Syntax::of(client, path);
        ConfigDocument { root: syntax.parse(text), syntax }
    }

    /// Returns the whole file as JSON, or a sentence that says why it cannot be parsed.
    pub fn into_json(self) -> Result<serde_json::Value, String> {
        let language = self.syntax.name();
        self.root.map(ConfigNode::into_json).map_err(|error| {
            let SyntaxError { line, column, what } = error;
            format!("it is not {language}: {what}, at line {line}, column {column}")
        })
    }
}

/// Reads the servers of one file.
pub(crate) fn parse_config(document: &ConfigDocument, scope: &ConfigSource<'_>) -> ParsedConfig {
    let mut parsed = ParsedConfig::default();
    let root = match &document.root {
        Ok(root) => root,
        Err(error) => {
            let (language, what, column) = (document.syntax.name(), &error.what, error.column);
            let what = format!("it is not {language}: {what}, at column {column}");
            parsed.add_problem(scope, error.line, None, what);
            parsed.is_broken = true;
            return parsed;
        }
    };
    if let Some(section) = find_section(root, scope, &mut parsed) {
        read_section(&section, scope, &mut parsed);
    }
    parsed.limit_problems(scope);
    parsed
}

/// Returns the result for a file that exists but cannot be read.
pub(crate) fn unreadable_config(why: &str, scope: &ConfigSource<'_>) -> ParsedConfig {
    let mut parsed = ParsedConfig { is_broken: true, ..ParsedConfig::default() };
    parsed.add_problem(scope, 1, None, why.to_owned());
    parsed
}

fn read_section(section: &Section<'_>, scope: &ConfigSource<'_>, parsed: &mut ParsedConfig) {
    for (name, node) in section.entries.iter().take(MAX_SERVERS) {
        read_entry(name, node, section, scope, parsed);
    }
    if let Some((_, node)) = section.entries.get(MAX_SERVERS) {
        let left = section.entries.len() - MAX_SERVERS;
        let what = format!(
            "{left} more servers are ignored; at most {MAX_SERVERS} are read from one file"
        );
        parsed.add_problem(scope, node.line, None, what);
    }
}

fn read_entry(
    written: &str,
    node: &ConfigNode,
    section: &Section<'_>,
    scope: &ConfigSource<'_>,
    parsed: &mut ParsedConfig,
) {
    let mut entry = ConfigEntry::new(written, node, scope, section.dialect);
    let mut off = entry.is_disabled().then(|| DISABLED_IN_FILE.to_owned());
    off = off.or_else(|| section.disabled_reason(written).map(str::to_owned));
    off = off.or_else(|| pending::disabled_reason(scope));
    if scope.client == ConfigOwner::Codexec {
        let (tuning, bad) = merge::read_tuning(&mut entry);
        parsed.tunings.extend(tuning);
        if let Some(bad) = bad {
            parsed.add_problem(scope, bad.line, Some(written), bad.what);
            return;
        }
        // `enabled` of our own file is in the tuning: it applies to every server of this name.
        off = None;
    }
    let line = node.line;
    match entry.read() {
        Ok(Some(config)) => {
            if off.is_none() {
                for note in std::mem::take(&mut entry.notes) {
                    parsed.add_note(scope, line, Some(written), note);
                }
            }
            let pending = PendingEntry::of(&entry);
            parsed.servers.push(DiscoveredServer {
                config,
                client: scope.client,
                line,
                off,
                pending,
            });
        }
        Ok(None) => {}
        // Problems of a disabled entry are not worth reporting.
        Err(_) if off.is_some() => {}
        Err(bad) => parsed.add_problem(scope, bad.line, Some(written), bad.what),
    }
}

impl ParsedConfig {
    /// Returns the enabled servers.
    pub fn enabled_configs(&self) -> Vec<ServerConfig> {
        let enabled = self.servers.iter().filter(|found| found.off.is_none());
        enabled.map(|found| found.config.clone()).collect()
    }

    /// Returns the disabled servers with the reason, unless another file enables one of that name.
    pub fn disabled_servers(&self) -> Vec<(ServerName, String)> {
        let is_enabled = |name: &ServerName| {
            let mut all = self.servers.iter().chain(&self.waiting);
            all.any(|found| found.off.is_none() && found.config.name == *name)
        };
        let mut disabled: Vec<(ServerName, String)> = self
            .servers
            .iter()
            .filter(|found| !is_enabled(&found.config.name))
            .filter_map(|found| Some((found.config.name.clone(), found.off.clone()?)))
            .collect();
        disabled.dedup_by(|a, b| a.0 == b.0);
        disabled
    }

    /// Returns the names of servers that wait for the user's approval.
    pub fn waiting_names(&self) -> Vec<String> {
        let waiting = self.waiting.iter().filter(|found| found.off.is_none());
        let mut names: Vec<String> = waiting.map(|found| found.config.name.to_string()).collect();
        names.sort();
        names.dedup();
        names
    }

    pub(crate) fn add_problem(
        &mut self,
        scope: &ConfigSource<'_>,
        line: u32,
        server: Option<&str>,
        what: String,
    ) {
        self.push(scope, line, server, what, ProblemEffect::LeftOut);
    }

    fn add_note(
        &mut self,
        scope: &ConfigSource<'_>,
        line: u32,
        server: Option<&str>,
        what: String,
    ) {
        self.push(scope, line, server, what, ProblemEffect::Kept);
    }

    fn push(
        &mut self,
        scope: &ConfigSource<'_>,
        line: u32,
        server: Option<&str>,
        what: String,
        effect: ProblemEffect,
    ) {
        let server = server.map(|name| name.chars().take(80).collect());
        let (file, client) = (scope.source.to_owned(), scope.client);
        self.problems.push(ConfigProblem { file, line, client, server, what, effect });
    }

    fn limit_problems(&mut self, scope: &ConfigSource<'_>) {
        let left = self.problems.len().saturating_sub(MAX_PROBLEMS);
        if left > 0 {
            self.problems.truncate(MAX_PROBLEMS);
            self.add_note(scope, 1, None, format!("the file has {left} more problems"));
        }
    }
}

#[cfg(test)]
mod tests;
