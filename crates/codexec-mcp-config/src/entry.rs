//! Turns one entry of a config file into a server that codexec can connect to.

mod options;
mod program;
mod remote;

use std::path::PathBuf;

use super::{
    ConfigOwner, ConfigSource, RemoteKind, SecretSource, ServerConfig, ServerOptions,
    TransportConfig,
    dialect::Dialect,
    expand::{Expansion, expand},
    node::ConfigNode,
    own_program::starts_codexec,
    server_name::to_server_name,
};

/// Maximum number of arguments, variables or headers in one entry.
const MAX_ITEMS: usize = 1_000;

/// One server's entry in a config file, while it is read.
pub(super) struct ConfigEntry<'a> {
    /// The server's name as the file writes it.
    pub(super) written: &'a str,
    pub(super) node: &'a ConfigNode,
    pub(super) scope: &'a ConfigSource<'a>,
    pub(super) dialect: &'static Dialect,
    pub(super) expansion: Expansion,
    /// Warnings for the file's author; the server is used regardless.
    pub(super) notes: Vec<String>,
}

/// The reason why an entry cannot be used, and its line.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{what}")]
pub(super) struct BadEntry {
    pub(super) line: u32,
    pub(super) what: String,
}

/// The transport that an entry names.
#[derive(Clone, Copy, PartialEq)]
enum TransportKind {
    Program,
    Remote(RemoteKind),
    /// Built into the client.
    Builtin,
}

impl<'a> ConfigEntry<'a> {
    pub(super) fn new(
        written: &'a str,
        node: &'a ConfigNode,
        scope: &'a ConfigSource<'a>,
        dialect: &'static Dialect,
    ) -> ConfigEntry<'a> {
        let expansion = Expansion::default();
        ConfigEntry { written, node, scope, dialect, expansion, notes: Vec::new() }
    }

    /// Returns the server, or `None` if the entry starts codexec itself, is built into the client,
    /// or is an entry of our own file that only sets options.
    pub(super) fn read(&mut self) -> Result<Option<ServerConfig>, BadEntry> {
        if self.node.entries().is_none() {
            return Err(self.error("its entry is not an object"));
        }
        let name = to_server_name(self.written)
            .map_err(|error| BadEntry { line: self.node.line, what: error.to_string() })?;
        let Some(transport) = self.read_transport()? else { return Ok(None) };
        if let TransportConfig::Stdio(program) = &transport
            && starts_codexec(program, &self.scope.world)
        {
            return Ok(None);
        }
        if let Some(input) = self.expansion.user_inputs.first() {
            return Err(self.error(&format!(
                "{input} needs a value that only the client can ask you for; name the server with \
                 `codexec servers add`, or write the value as ${{env:NAME}}"
            )));
        }
        if let Some(keyring) = self.expansion.foreign_keyring.first() {
            return Err(self.error(&format!(
                "{keyring} is in MCPProxy's own keyring, which is not read here; write the value as \
                 ${{env:NAME}} there, or name the server with `codexec servers add`"
            )));
        }
        let narrow = self.read_options()?;
        if name.as_str() != self.written {
            self.notes.push(format!("server {:?}: it is called {name} here", self.display_name()));
        }
        self.note_unset_variables();
        let source = self.scope.source.to_owned();
        Ok(Some(ServerConfig { name, transport, source, narrow }))
    }

    fn read_transport(&mut self) -> Result<Option<TransportConfig>, BadEntry> {
        let url_key = self.dialect.urls.iter().find(|(key, _)| self.node.get(key).is_some());
        let has_command = self.node.get(self.dialect.command).is_some();
        match (self.transport_kind()?, url_key) {
            (Some(TransportKind::Builtin), _) => Ok(None),
            (Some(TransportKind::Program), _) => self.read_program().map(Some),
            (Some(TransportKind::Remote(kind)), Some((key, _))) => {
                self.read_remote(key, kind).map(Some)
            }
            (Some(TransportKind::Remote(_)), None) => {
                Err(self.error("`url` is missing; write where the server is"))
            }
            (None, Some((key, kind))) if !has_command => match kind {
                Some(kind) => self.read_remote(key, *kind).map(Some),
                None => Err(self.error_at(
                    key,
                    "has no `type` beside it; write \"type\": \"http\" or \"type\": \"sse\"",
                )),
            },
            (None, _) if !has_command && self.scope.client == ConfigOwner::Codexec => Ok(None),
            (None, _)
                if !has_command
                    && self.scope.client == ConfigOwner::Zed
                    && self.node.get("settings").is_some() =>
            {
                Err(self.error(
                    "an extension of Zed starts it, so its command is not known; name the server \
                     with `codexec servers add`",
                ))
            }
            (None, _) => self.read_program().map(Some),
        }
    }

    /// Returns the transport that the entry names, if it names one.
    fn transport_kind(&self) -> Result<Option<TransportKind>, BadEntry> {
        let Some(key) = self.dialect.transport_keys.iter().find(|key| self.node.get(key).is_some())
        else {
            return Ok(None);
        };
        let word = self.node.get(key).and_then(ConfigNode::text).unwrap_or_default();
        match word {
            // MCPProxy: the rest of the entry decides.
            "auto" | "" if self.dialect.has_quarantine => Ok(None),
            "stdio" | "local" => Ok(Some(TransportKind::Program)),
            "sse" => Ok(Some(TransportKind::Remote(RemoteKind::Sse))),
            "http" | "streamable-http" | "streamable_http" | "streamableHttp" | "remote" => {
                Ok(Some(TransportKind::Remote(RemoteKind::Http)))
            }
            _ if self.scope.client == ConfigOwner::Goose => Ok(Some(TransportKind::Builtin)),
            _ => {
                let word: String = word.chars().take(40).collect();
                let what = format!("is {word:?}, which is not supported; write stdio, http or sse");
                Err(self.error_at(key, &what))
            }
        }
    }

    /// Returns true if the entry disables its server with `enabled` or `disabled`.
    pub(super) fn is_disabled(&self) -> bool {
        let says = |key: &str, value: bool| self.node.get(key).is_some_and(|node| node.is(value));
        says("disabled", true) || says("enabled", false)
    }

    fn note_unset_variables(&mut self) {
        let mut unset = std::mem::take(&mut self.expansion.unset);
        unset.dedup();
        for written in unset {
            let advice = match written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
                Some(name) if !name.contains(':') => {
                    format!("set it, or write ${{{name}:-default}}")
                }
                _ => "set it where codexec is started".to_owned(),
            };
            self.notes
                .push(format!("server {:?}: {written} is not set; {advice}", self.display_name()));
        }
    }

    /// Returns the name as written, cut to 80 characters.
    pub(super) fn display_name(&self) -> String {
        self.written.chars().take(80).collect()
    }

    fn error(&self, what: &str) -> BadEntry {
        BadEntry { line: self.node.line, what: format!("server {:?}: {what}", self.display_name()) }
    }

    fn error_at(&self, key: &str, what: &str) -> BadEntry {
        let line = self.node.get(key).map_or(self.node.line, |node| node.line);
        BadEntry { line, what: format!("server {:?}: `{key}` {what}", self.display_name()) }
    }

    fn expand(&mut self, text: &str) -> String {
        expand(text, self.dialect.variables, self.scope, &mut self.expansion)
    }

    /// Returns a string with its variables expanded.
    fn text(&mut self, key: &str) -> Result<Option<String>, BadEntry> {
        let Some(node) = self.node.get(key) else { return Ok(None) };
        let Some(text) = node.text() else { return Err(self.error_at(key, "must be a string")) };
        let text = self.expand(text);
        self.check_no_nul(key, &text)?;
        Ok(Some(text))
    }

    fn texts(&mut self, key: &str) -> Result<Option<Vec<String>>, BadEntry> {
        let Some(node) = self.node.get(key) else { return Ok(None) };
        let raw: Option<Vec<String>> =
            node.items().and_then(|items| items.iter().map(ConfigNode::scalar_text).collect());
        let raw = raw.filter(|items| items.len() <= MAX_ITEMS);
        let Some(raw) = raw else {
            return Err(self.error_at(key, "must be a list of strings, 1000 at most"));
        };
        let full: Vec<String> = raw.iter().map(|text| self.expand(text)).collect();
        for text in &full {
            self.check_no_nul(key, text)?;
        }
        Ok(Some(full))
    }

    /// Returns a table of strings; null values count as not set.
    fn pairs(&mut self, key: &str) -> Result<Vec<(String, SecretSource)>, BadEntry> {
        let Some(node) = self.node.get(key) else { return Ok(Vec::new()) };
        let entries = node.entries().filter(|entries| entries.len() <= MAX_ITEMS);
        let Some(entries) = entries else {
            return Err(self.error_at(key, "must be an object of strings, 1000 at most"));
        };
        let mut pairs = Vec::new();
        for (name, value) in entries {
            if value.value == super::node::ConfigValue::Null {
                continue;
            }
            let Some(text) = value.scalar_text() else {
                let what = format!("must be an object of strings, but {name:?} is not a string");
                return Err(self.error_at(key, &what));
            };
            pairs.push((name.to_owned(), self.secret(key, &text)?));
        }
        Ok(pairs)
    }

    /// Reads a value, which in our own file may be a reference: `env:`, `file:` or `keyring:`.
    fn secret(&mut self, key: &str, text: &str) -> Result<SecretSource, BadEntry> {
        if self.scope.client == ConfigOwner::Codexec {
            match text.split_once(':') {
                Some(("env", name)) => return Ok(SecretSource::Variable(name.to_owned())),
                Some(("keyring", name)) => return Ok(SecretSource::Keyring(name.to_owned())),
                Some(("file", path)) => {
                    let path = self.expand_home(path);
                    if !path.is_absolute() {
                        let what = "has a `file:` that is not an absolute path; start it with `/` \
                                    or `~/`";
                        return Err(self.error_at(key, what));
                    }
                    return Ok(SecretSource::File(path));
                }
                _ => {}
            }
        }
        let full = self.expand(text);
        self.check_no_nul(key, &full)?;
        Ok(SecretSource::Plain(full))
    }

    /// Expands a leading `~/` to the home directory.
    fn expand_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.scope.world.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }

    fn check_no_nul(&self, key: &str, text: &str) -> Result<(), BadEntry> {
        if text.contains('\0') {
            return Err(self.error_at(key, "has a NUL character; remove it"));
        }
        Ok(())
    }

    /// Reads the options of an entry in our own file. Unknown keys are errors: a misspelt key
    /// must not leave something open.
    pub(super) fn read_options_strictly(&mut self) -> Result<ServerOptions, BadEntry> {
        self.check_keys()?;
        self.read_options()
    }
}
