//! A program on this machine.

use std::path::Path;

use super::{BadEntry, Entry};
use crate::config::{
    Client, Secret, StdioConfig, TransportConfig,
    node::{Node, Tree},
    relative::{is_relative_argument, is_relative_program},
};

impl Entry<'_> {
    pub(super) fn program(&mut self) -> Result<TransportConfig, BadEntry> {
        let key = self.dialect.command;
        let (command, mut args) = match self.node.get(key).map(|node| &node.value) {
            Some(Tree::Text(command)) => (self.full(command), Vec::new()),
            // opencode: the program and its arguments in one list.
            Some(Tree::List(_)) => {
                let mut words = self.texts(key)?.unwrap_or_default().into_iter();
                (words.next().unwrap_or_default(), words.collect())
            }
            // Zed, before 2025.
            Some(Tree::Table(_)) => return self.nested(key),
            _ => (String::new(), Vec::new()),
        };
        self.without_nul(key, &command)?;
        args.extend(self.texts("args")?.unwrap_or_default());
        let mut env = self.env_file()?;
        env.extend(self.pairs(self.dialect.env)?);
        env.extend(self.named_variables());
        let cwd = self.text(self.dialect.cwd)?;
        self.finished(StdioConfig { command, args, env, cwd: cwd.map(|cwd| self.at_home(&cwd)) })
    }

    fn nested(&mut self, key: &str) -> Result<TransportConfig, BadEntry> {
        let Some(inner) = self.node.get(key) else {
            return Err(self.wrong_at(key, "is missing or empty; write the program that starts it"));
        };
        let mut entry = Entry::new(self.written, inner, self.scope, self.dialect);
        let command = entry.text("path")?.unwrap_or_default();
        let args = entry.texts("args")?.unwrap_or_default();
        let env = entry.pairs("env")?;
        self.gaps.read.append(&mut entry.gaps.read);
        self.finished(StdioConfig { command, args, env, cwd: None })
    }

    fn finished(&self, mut program: StdioConfig) -> Result<TransportConfig, BadEntry> {
        let key = self.dialect.command;
        if program.command.trim().is_empty() {
            return Err(self.wrong_at(key, "is missing or empty; write the program that starts it"));
        }
        if matches!(self.scope.client, Client::Own | Client::Named) {
            program.command = self.at_home(&program.command).to_string_lossy().into_owned();
        }
        self.settle_cwd(&mut program)?;
        let bad =
            program.env.iter().find(|(name, _)| name.is_empty() || name.contains(['=', '\0']));
        if let Some((name, _)) = bad {
            let what = format!("names the variable {name:?}, which cannot be");
            return Err(self.wrong_at(self.dialect.env, &what));
        }
        Ok(TransportConfig::Stdio(program))
    }

    /// Servers of a project start in it, unless their entry says where; others say it with a whole
    /// path, or start in the user's home directory.
    ///
    /// THREAT[CFG-1]: what a user's own file means must not depend on the project we are in.
    fn settle_cwd(&self, program: &mut StdioConfig) -> Result<(), BadEntry> {
        let cwd_key = self.dialect.cwd;
        let here = self.scope.world.here.filter(|_| self.scope.reach.is_in_project());
        program.cwd = match (program.cwd.take(), here) {
            (Some(cwd), _) if cwd.is_absolute() => Some(cwd),
            (Some(cwd), Some(here)) => Some(here.join(cwd)),
            (None, Some(here)) => Some(here.to_owned()),
            (Some(_), None) => {
                let what = "is not a whole path; write it from `/` or `~/` on";
                return Err(self.wrong_at(cwd_key, what));
            }
            (None, None) => None,
        };
        if program.cwd.is_some() {
            return Ok(());
        }
        let advice = "a relative path, and the server starts in your home directory; write it from \
                      `/` on, or name its directory with";
        if is_relative_program(&program.command) {
            let what = format!("is {advice} `{cwd_key}`");
            return Err(self.wrong_at(self.dialect.command, &what));
        }
        let is_relative = |arg: &&String| is_relative_argument(&program.command, arg);
        match program.args.iter().find(is_relative) {
            None => Ok(()),
            Some(arg) => {
                let arg: String = arg.chars().take(80).collect();
                Err(self.wrong(&format!("its argument {arg:?} is {advice} `{cwd_key}`")))
            }
        }
    }

    /// Cursor and VS Code: more variables, in a file of `NAME=value` lines.
    fn env_file(&mut self) -> Result<Vec<(String, Secret)>, BadEntry> {
        if !matches!(self.scope.client, Client::Cursor | Client::VsCode) {
            return Ok(Vec::new());
        }
        let Some(path) = self.text("envFile")? else { return Ok(Vec::new()) };
        let path = self.scope.world.here.unwrap_or(Path::new("")).join(self.at_home(&path));
        let Some(text) = (self.scope.world.text_of)(&path) else {
            let what = format!("{} cannot be read", path.display());
            self.notes.push(format!("server {:?}: `envFile`: {what}", self.shown()));
            return Ok(Vec::new());
        };
        let assignments = text.lines().filter_map(assignment).collect();
        self.gaps.read.push((path, text));
        Ok(assignments)
    }

    /// Variables of ours that the entry asks for by name.
    fn named_variables(&mut self) -> Vec<(String, Secret)> {
        let (key, is_told) = match self.scope.client {
            Client::Codex => ("env_vars", false),
            // goose keeps these in its keyring.
            Client::Goose => ("env_keys", true),
            _ => return Vec::new(),
        };
        let items = self.node.get(key).and_then(Node::items).unwrap_or_default();
        let mut found = Vec::new();
        for item in items.iter().take(super::MAX_ITEMS) {
            let Some(name) = item.text().or_else(|| item.get("name")?.text()) else { continue };
            if (self.scope.world.variable)(name).is_some() {
                found.push((name.to_owned(), Secret::Variable(name.to_owned())));
            } else if is_told {
                self.notes.push(format!(
                    "server {:?}: {name} needs a value that is in goose's keyring; set it where \
                     codexec is started",
                    self.shown()
                ));
            }
        }
        found
    }
}

/// `NAME=value`, `export NAME="value"`; nothing for comments and the rest.
fn assignment(line: &str) -> Option<(String, Secret)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && !name.is_empty() && !value.contains('\0'))
        .then(|| (name.to_owned(), Secret::Plain(value.to_owned())))
}
