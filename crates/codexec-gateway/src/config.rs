//! Reading other programs' configuration files. Pure: the text comes in, and what a `${VAR}`
//! stands for is asked of the caller.

mod expand;
mod jsonc;
mod server;

use std::path::{Path, PathBuf};

use codexec_types::ServerName;
use serde_json::{Map, Value};

use expand::expand;
pub use server::{
    Narrow, OAuthConfig, RemoteConfig, RemoteKind, Secret, ServerConfig, StdioConfig,
    TransportConfig, TrustMode,
};

/// What one file gave. A bad entry never hides a good one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    pub servers: Vec<ServerConfig>,
    pub problems: Vec<Problem>,
}

/// Something in a file that its author should know of.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{source_file}: {what}", source_file = .file.display())]
pub struct Problem {
    pub file: PathBuf,
    /// As written, cut to 80 characters; `None` when it is about the whole file.
    pub server: Option<String>,
    /// A sentence.
    pub what: String,
    pub effect: Effect,
}

/// What a [`Problem`] led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The file or the server is not used.
    LeftOut,
    /// It is used as it stands.
    Kept,
}

/// Where a file stands and what it is read for.
pub struct Scope<'a> {
    pub source: &'a Path,
    /// Also read `projects["<dir>"].mcpServers`, as Claude Code keeps them; these win.
    pub project_dir: Option<&'a Path>,
    /// Our own binary: an entry that starts it is left out, or we would list ourselves.
    pub own_exe: &'a Path,
    /// Somebody named this file, so it has to have an `mcpServers`.
    pub is_named: bool,
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// Reads the `mcpServers` of one file: JSON that may have a byte order mark, comments and
/// trailing commas.
pub fn parse(text: &str, scope: &Scope<'_>) -> Parsed {
    let mut parsed = Parsed::default();
    let root: Value = match serde_json::from_str(&jsonc::to_json(text)) {
        Ok(root) => root,
        Err(err) => {
            parsed.problem(scope, None, format!("it is not JSON: {err}"));
            return parsed;
        }
    };
    if scope.is_named && root.get("mcpServers").is_none() {
        parsed.problem(scope, None, "it has no `mcpServers`".to_owned());
    }
    let project = scope
        .project_dir
        .and_then(|dir| root.get("projects")?.get(dir.to_str()?)?.get("mcpServers"));
    for entries in [root.get("mcpServers"), project].into_iter().flatten() {
        let mut nearer = Parsed::default();
        read_entries(entries, scope, &mut nearer);
        parsed = merge(vec![parsed, nearer]);
    }
    parsed
}

/// Joins what several files gave. A later file's entry replaces an earlier one of the same name
/// as a whole, and keeps its place.
pub fn merge(files: Vec<Parsed>) -> Parsed {
    let mut all = Parsed::default();
    for file in files {
        all.problems.extend(file.problems);
        for server in file.servers {
            match all.servers.iter_mut().find(|known| known.name == server.name) {
                Some(known) => *known = server,
                None => all.servers.push(server),
            }
        }
    }
    all
}

impl Parsed {
    fn problem(&mut self, scope: &Scope<'_>, server: Option<&str>, what: String) {
        self.note(scope, server, what, Effect::LeftOut);
    }

    fn note(&mut self, scope: &Scope<'_>, server: Option<&str>, what: String, effect: Effect) {
        let server = server.map(|name| name.chars().take(80).collect());
        let file = scope.source.to_owned();
        self.problems.push(Problem { file, server, what, effect });
    }
}

fn read_entries(entries: &Value, scope: &Scope<'_>, parsed: &mut Parsed) {
    let Value::Object(entries) = entries else {
        parsed.problem(scope, None, "`mcpServers` is not an object".to_owned());
        return;
    };
    for (name, entry) in entries {
        match read_entry(name, entry, scope) {
            Ok(Some((server, unset))) => {
                for variable in unset {
                    let what = format!(
                        "server {name:?}: ${{{variable}}} is not set; set it, or write \
                         ${{{variable}:-default}}"
                    );
                    parsed.note(scope, Some(name), what, Effect::Kept);
                }
                parsed.servers.push(server);
            }
            Ok(None) => {}
            Err(what) => parsed.problem(scope, Some(name), what.to_string()),
        }
    }
}

/// Why one entry cannot be used.
#[derive(Debug, thiserror::Error)]
enum BadEntry {
    #[error("{0}")]
    Name(#[from] codexec_types::InvalidServerName),
    #[error("server {0:?}: its entry is not an object")]
    NotAnObject(String),
    #[error("server {0:?}: it is reached over {1}, which is not supported yet; only stdio is")]
    Remote(String, String),
    #[error("server {0:?}: `{1}` is missing or empty; write the program that starts it")]
    Missing(String, &'static str),
    #[error("server {0:?}: `{1}` must be {2}")]
    Shape(String, &'static str, &'static str),
}

/// The server and the variables that were not set; nothing for one that is switched off or is us.
fn read_entry(
    name: &str,
    entry: &Value,
    scope: &Scope<'_>,
) -> Result<Option<(ServerConfig, Vec<String>)>, BadEntry> {
    let shown = || name.chars().take(80).collect::<String>();
    let Value::Object(entry) = entry else {
        return Err(BadEntry::NotAnObject(shown()));
    };
    let says = |key: &str, value: bool| entry.get(key) == Some(&Value::Bool(value));
    if says("disabled", true) || says("enabled", false) {
        return Ok(None);
    }
    let server = ServerName::new(name)?;
    if let Some(transport) = remote_transport(entry) {
        return Err(BadEntry::Remote(shown(), transport));
    }
    let mut unset = Vec::new();
    let mut full = |text: &str| expand(text, scope.env, &mut unset);
    let command = match entry.get("command") {
        Some(Value::String(command)) if !command.trim().is_empty() => full(command),
        _ => return Err(BadEntry::Missing(shown(), "command")),
    };
    let args = match entry.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(args)) => args.iter().map(|arg| full(&plain(arg))).collect(),
        Some(_) => return Err(BadEntry::Shape(shown(), "args", "a list of strings")),
    };
    let env = match entry.get("env") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(env)) => env
            .iter()
            .map(|(key, value)| (key.clone(), Secret::Plain(full(&plain(value)))))
            .collect(),
        Some(_) => return Err(BadEntry::Shape(shown(), "env", "an object of strings")),
    };
    let cwd = match entry.get("cwd") {
        None | Some(Value::Null) => None,
        Some(Value::String(cwd)) => Some(PathBuf::from(full(cwd))),
        Some(_) => return Err(BadEntry::Shape(shown(), "cwd", "a path")),
    };
    if is_ourselves(&command, &args, scope.own_exe) {
        return Ok(None);
    }
    let source = scope.source.to_owned();
    let program = StdioConfig { command, args, env, cwd };
    Ok(Some((ServerConfig::stdio(server, program, source), unset)))
}

fn remote_transport(entry: &Map<String, Value>) -> Option<String> {
    let kind = entry.get("type").or_else(|| entry.get("transport")).and_then(Value::as_str);
    match kind {
        Some("stdio") => None,
        Some(kind) => Some(kind.chars().take(40).collect()),
        None if entry.contains_key("url") || entry.contains_key("serverUrl") => {
            Some("http".to_owned())
        }
        None => None,
    }
}

/// Numbers and booleans stand for their text, as shells and most clients have it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_ourselves(command: &str, args: &[String], own_exe: &Path) -> bool {
    const RUNNERS: [&str; 8] = ["npx", "uvx", "bunx", "pnpm", "yarn", "pipx", "uv", "npm"];
    let program = Path::new(command);
    let file = program.file_stem().and_then(|file| file.to_str()).unwrap_or_default();
    if file == "codexec" || program == own_exe {
        return true;
    }
    // The package behind a runner, with or without a version: `codexec@1.2`.
    let is_package = |arg: &&String| !arg.starts_with('-') && *arg != "dlx" && *arg != "run";
    RUNNERS.contains(&file)
        && args
            .iter()
            .find(is_package)
            .is_some_and(|package| package.split('@').next() == Some("codexec"))
}

#[cfg(test)]
mod tests;
