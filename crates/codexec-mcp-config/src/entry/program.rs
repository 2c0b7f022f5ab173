//! Reads an entry for a local program, which speaks MCP over stdio.

use std::path::Path;

use super::{BadEntry, ConfigEntry};
use crate::{
    ConfigOwner, SecretSource, StdioConfig, TransportConfig,
    node::{ConfigNode, ConfigValue},
    relative_paths::{is_relative_argument, is_relative_program},
};

impl ConfigEntry<'_> {
    pub(super) fn read_program(&mut self) -> Result<TransportConfig, BadEntry> {
        let key = self.dialect.command;
        let (command, mut args) = match self.node.get(key).map(|node| &node.value) {
            Some(ConfigValue::Text(command)) => (self.expand(command), Vec::new()),
            // opencode: the program and its arguments in one list.
            Some(ConfigValue::List(_)) => {
                let mut words = self.texts(key)?.unwrap_or_default().into_iter();
                (words.next().unwrap_or_default(), words.collect())
            }
            // Zed before 2025: a table with `path`, `args` and `env`.
            Some(ConfigValue::Table(_)) => return self.read_nested_program(key),
            _ => (String::new(), Vec::new()),
        };
        self.check_no_nul(key, &command)?;
        args.extend(self.texts("args")?.unwrap_or_default());
        let mut env = self.env_file()?;
        env.extend(self.pairs(self.dialect.env)?);
        env.extend(self.forwarded_variables());
        let cwd = self.text(self.dialect.cwd)?;
        let cwd = cwd.map(|cwd| self.expand_home(&cwd));
        self.check_program(StdioConfig { command, args, env, cwd })
    }

    fn read_nested_program(&mut self, key: &str) -> Result<TransportConfig, BadEntry> {
        let Some(inner) = self.node.get(key) else {
            return Err(self.error_at(key, "is missing or empty; write the program that starts it"));
        };
        let mut entry = ConfigEntry::new(self.written, inner, self.scope, self.dialect);
        let command = entry.text("path")?.unwrap_or_default();
        let args = entry.texts("args")?.unwrap_or_default();
        let env = entry.pairs("env")?;
        self.expansion.files.append(&mut entry.expansion.files);
        self.check_program(StdioConfig { command, args, env, cwd: None })
    }

    fn check_program(&self, mut program: StdioConfig) -> Result<TransportConfig, BadEntry> {
        let key = self.dialect.command;
        if program.command.trim().is_empty() {
            return Err(self.error_at(key, "is missing or empty; write the program that starts it"));
        }
        if matches!(self.scope.client, ConfigOwner::Codexec | ConfigOwner::Named) {
            program.command = self.expand_home(&program.command).to_string_lossy().into_owned();
        }
        self.resolve_cwd(&mut program)?;
        let bad =
            program.env.iter().find(|(name, _)| name.is_empty() || name.contains(['=', '\0']));
        if let Some((name, _)) = bad {
            let what = format!("has the invalid variable name {name:?}");
            return Err(self.error_at(self.dialect.env, &what));
        }
        Ok(TransportConfig::Stdio(program))
    }

    /// Sets the working directory. A project's server starts in the project unless its entry names
    /// a directory; any other server needs an absolute path, or starts in the user's home.
    ///
    /// THREAT[CFG-1]: the meaning of a user's own file must not depend on the current project.
    fn resolve_cwd(&self, program: &mut StdioConfig) -> Result<(), BadEntry> {
        let cwd_key = self.dialect.cwd;
        let here = self.scope.world.here.filter(|_| self.scope.reach.is_in_project());
        program.cwd = match (program.cwd.take(), here) {
            (Some(cwd), _) if cwd.is_absolute() => Some(cwd),
            (Some(cwd), Some(here)) => Some(here.join(cwd)),
            (None, Some(here)) => Some(here.to_owned()),
            (Some(_), None) => {
                let what = "is not an absolute path; start it with `/` or `~/`";
                return Err(self.error_at(cwd_key, what));
            }
            (None, None) => None,
        };
        if program.cwd.is_some() {
            return Ok(());
        }
        let advice = "a relative path, and the server starts in your home directory; write an \
                      absolute path, or set the directory with";
        if is_relative_program(&program.command) {
            let what = format!("is {advice} `{cwd_key}`");
            return Err(self.error_at(self.dialect.command, &what));
        }
        let is_relative = |arg: &&String| is_relative_argument(&program.command, arg);
        match program.args.iter().find(is_relative) {
            None => Ok(()),
            Some(arg) => {
                let arg: String = arg.chars().take(80).collect();
                Err(self.error(&format!("its argument {arg:?} is {advice} `{cwd_key}`")))
            }
        }
    }

    /// Reads the variables of `envFile`, which Cursor and VS Code support: `NAME=value` lines.
    fn env_file(&mut self) -> Result<Vec<(String, SecretSource)>, BadEntry> {
        if !matches!(self.scope.client, ConfigOwner::Cursor | ConfigOwner::VsCode) {
            return Ok(Vec::new());
        }
        let Some(path) = self.text("envFile")? else { return Ok(Vec::new()) };
        let path = self.scope.world.here.unwrap_or(Path::new("")).join(self.expand_home(&path));
        let Some(text) = (self.scope.world.text_of)(&path) else {
            let what = format!("{} cannot be read", path.display());
            self.notes.push(format!("server {:?}: `envFile`: {what}", self.display_name()));
            return Ok(Vec::new());
        };
        let assignments = text.lines().filter_map(parse_assignment).collect();
        self.expansion.files.push((path, text));
        Ok(assignments)
    }

    /// Returns the variables of codexec's environment that the entry asks for by name.
    fn forwarded_variables(&mut self) -> Vec<(String, SecretSource)> {
        let (key, notes_missing) = match self.scope.client {
            ConfigOwner::Codex => ("env_vars", false),
            // goose stores these in its keyring.
            ConfigOwner::Goose => ("env_keys", true),
            _ => return Vec::new(),
        };
        let items = self.node.get(key).and_then(ConfigNode::items).unwrap_or_default();
        let mut found = Vec::new();
        for item in items.iter().take(super::MAX_ITEMS) {
            let Some(name) = item.text().or_else(|| item.get("name")?.text()) else { continue };
            if (self.scope.world.variable)(name).is_some() {
                found.push((name.to_owned(), SecretSource::Variable(name.to_owned())));
            } else if notes_missing {
                self.notes.push(format!(
                    "server {:?}: {name} needs a value that is in goose's keyring; set it where \
                     codexec is started",
                    self.display_name()
                ));
            }
        }
        found
    }
}

/// Parses `NAME=value` or `export NAME="value"`; returns `None` for any other line.
fn parse_assignment(line: &str) -> Option<(String, SecretSource)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && !name.is_empty() && !value.contains('\0'))
        .then(|| (name.to_owned(), SecretSource::Plain(value.to_owned())))
}
