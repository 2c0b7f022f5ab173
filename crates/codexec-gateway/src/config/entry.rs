//! One entry of a file, whoever's, as a server that can be connected.

mod narrow;
mod program;
mod remote;

use std::path::PathBuf;

use super::{
    Client, Narrow, RemoteKind, Scope, Secret, ServerConfig, TransportConfig,
    dialect::Dialect,
    expand::{Gaps, expand},
    name,
    node::Node,
    ourselves::is_ourselves,
};

/// More arguments, variables or headers than this, and it is no entry.
const MAX_ITEMS: usize = 1_000;

/// An entry while it is read.
pub(super) struct Entry<'a> {
    pub(super) written: &'a str,
    pub(super) node: &'a Node,
    pub(super) scope: &'a Scope<'a>,
    pub(super) dialect: &'static Dialect,
    pub(super) gaps: Gaps,
    /// What the author should know, though the server is used.
    pub(super) notes: Vec<String>,
}

/// Why an entry cannot be used, and on which line.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{what}")]
pub(super) struct BadEntry {
    pub(super) line: u32,
    pub(super) what: String,
}

/// What an entry says its transport is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Program,
    Remote(RemoteKind),
    /// The client's own part.
    Inside,
}

impl<'a> Entry<'a> {
    pub(super) fn new(
        written: &'a str,
        node: &'a Node,
        scope: &'a Scope<'a>,
        dialect: &'static Dialect,
    ) -> Entry<'a> {
        Entry { written, node, scope, dialect, gaps: Gaps::default(), notes: Vec::new() }
    }

    /// Nothing for ourselves, for a part of the client, and for what our own file only narrows.
    pub(super) fn read(&mut self) -> Result<Option<ServerConfig>, BadEntry> {
        if self.node.entries().is_none() {
            return Err(self.wrong("its entry is not an object"));
        }
        let name = name::usable(self.written)
            .map_err(|error| BadEntry { line: self.node.line, what: error.to_string() })?;
        let Some(transport) = self.transport()? else { return Ok(None) };
        if let TransportConfig::Stdio(program) = &transport
            && is_ourselves(program, &self.scope.world)
        {
            return Ok(None);
        }
        if let Some(asked) = self.gaps.asked.first() {
            return Err(self.wrong(&format!(
                "{asked} needs a value that only the client can ask you for; name the server with \
                 `codexec servers add`, or write the value as ${{env:NAME}}"
            )));
        }
        if let Some(locked) = self.gaps.locked.first() {
            return Err(self.wrong(&format!(
                "{locked} is in MCPProxy's own keyring, which is not read here; write the value as \
                 ${{env:NAME}} there, or name the server with `codexec servers add`"
            )));
        }
        let narrow = self.narrow()?;
        if name.as_str() != self.written {
            self.notes.push(format!("server {:?}: it is called {name} here", self.shown()));
        }
        self.note_unset();
        let source = self.scope.source.to_owned();
        Ok(Some(ServerConfig { name, transport, source, narrow }))
    }

    fn transport(&mut self) -> Result<Option<TransportConfig>, BadEntry> {
        let url_key = self.dialect.urls.iter().find(|(key, _)| self.node.get(key).is_some());
        let has_command = self.node.get(self.dialect.command).is_some();
        match (self.kind()?, url_key) {
            (Some(Kind::Inside), _) => Ok(None),
            (Some(Kind::Program), _) => self.program().map(Some),
            (Some(Kind::Remote(kind)), Some((key, _))) => self.remote(key, kind).map(Some),
            (Some(Kind::Remote(_)), None) => {
                Err(self.wrong("`url` is missing; write where the server is"))
            }
            (None, Some((key, kind))) if !has_command => match kind {
                Some(kind) => self.remote(key, *kind).map(Some),
                None => Err(self.wrong_at(
                    key,
                    "has no `type` beside it; write \"type\": \"http\" or \"type\": \"sse\"",
                )),
            },
            (None, _) if !has_command && self.scope.client == Client::Own => Ok(None),
            (None, _)
                if !has_command
                    && self.scope.client == Client::Zed
                    && self.node.get("settings").is_some() =>
            {
                Err(self.wrong(
                    "an extension of Zed starts it, so its command is not known; name the server \
                     with `codexec servers add`",
                ))
            }
            (None, _) => self.program().map(Some),
        }
    }

    /// What `type` says, if it is there.
    fn kind(&self) -> Result<Option<Kind>, BadEntry> {
        let Some(key) = self.dialect.kinds.iter().find(|key| self.node.get(key).is_some()) else {
            return Ok(None);
        };
        let word = self.node.get(key).and_then(Node::text).unwrap_or_default();
        match word {
            // MCPProxy: whatever the rest of the entry is for.
            "auto" | "" if self.dialect.has_quarantine => Ok(None),
            "stdio" | "local" => Ok(Some(Kind::Program)),
            "sse" => Ok(Some(Kind::Remote(RemoteKind::Sse))),
            "http" | "streamable-http" | "streamable_http" | "streamableHttp" | "remote" => {
                Ok(Some(Kind::Remote(RemoteKind::Http)))
            }
            _ if self.scope.client == Client::Goose => Ok(Some(Kind::Inside)),
            _ => {
                let word: String = word.chars().take(40).collect();
                let what = format!("is {word:?}, which is not supported; write stdio, http or sse");
                Err(self.wrong_at(key, &what))
            }
        }
    }

    /// A file that is not the client's word for everything: `enabled`, `disabled`.
    pub(super) fn is_off(&self) -> bool {
        let says = |key: &str, value: bool| self.node.get(key).is_some_and(|node| node.is(value));
        says("disabled", true) || says("enabled", false)
    }

    fn note_unset(&mut self) {
        let mut unset = std::mem::take(&mut self.gaps.unset);
        unset.dedup();
        for written in unset {
            let advice = match written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
                Some(name) if !name.contains(':') => {
                    format!("set it, or write ${{{name}:-default}}")
                }
                _ => "set it where codexec is started".to_owned(),
            };
            self.notes.push(format!("server {:?}: {written} is not set; {advice}", self.shown()));
        }
    }

    pub(super) fn shown(&self) -> String {
        self.written.chars().take(80).collect()
    }

    fn wrong(&self, what: &str) -> BadEntry {
        BadEntry { line: self.node.line, what: format!("server {:?}: {what}", self.shown()) }
    }

    fn wrong_at(&self, key: &str, what: &str) -> BadEntry {
        let line = self.node.get(key).map_or(self.node.line, |node| node.line);
        BadEntry { line, what: format!("server {:?}: `{key}` {what}", self.shown()) }
    }

    fn full(&mut self, text: &str) -> String {
        expand(text, self.dialect.variables, self.scope, &mut self.gaps)
    }

    /// A text with its variables filled in.
    fn text(&mut self, key: &str) -> Result<Option<String>, BadEntry> {
        let Some(node) = self.node.get(key) else { return Ok(None) };
        let Some(text) = node.text() else { return Err(self.wrong_at(key, "must be a text")) };
        let text = self.full(text);
        self.without_nul(key, &text)?;
        Ok(Some(text))
    }

    fn texts(&mut self, key: &str) -> Result<Option<Vec<String>>, BadEntry> {
        let Some(node) = self.node.get(key) else { return Ok(None) };
        let plain: Option<Vec<String>> =
            node.items().and_then(|items| items.iter().map(Node::plain).collect());
        let plain = plain.filter(|items| items.len() <= MAX_ITEMS);
        let Some(plain) = plain else {
            return Err(self.wrong_at(key, "must be a list of strings, 1000 at most"));
        };
        let full: Vec<String> = plain.iter().map(|text| self.full(text)).collect();
        for text in &full {
            self.without_nul(key, text)?;
        }
        Ok(Some(full))
    }

    /// A table of texts; what is null is not set.
    fn pairs(&mut self, key: &str) -> Result<Vec<(String, Secret)>, BadEntry> {
        let Some(node) = self.node.get(key) else { return Ok(Vec::new()) };
        let entries = node.entries().filter(|entries| entries.len() <= MAX_ITEMS);
        let Some(entries) = entries else {
            return Err(self.wrong_at(key, "must be an object of strings, 1000 at most"));
        };
        let mut pairs = Vec::new();
        for (name, value) in entries {
            if value.value == super::node::Tree::Null {
                continue;
            }
            let Some(text) = value.plain() else {
                let what = format!("must be an object of strings, and {name:?} is none");
                return Err(self.wrong_at(key, &what));
            };
            pairs.push((name.to_owned(), self.secret(key, &text)?));
        }
        Ok(pairs)
    }

    /// In our own file, a value may say where it is kept.
    fn secret(&mut self, key: &str, text: &str) -> Result<Secret, BadEntry> {
        if self.scope.client == Client::Own {
            match text.split_once(':') {
                Some(("env", name)) => return Ok(Secret::Variable(name.to_owned())),
                Some(("keyring", name)) => return Ok(Secret::Keyring(name.to_owned())),
                Some(("file", path)) => {
                    let path = self.at_home(path);
                    if !path.is_absolute() {
                        let what = "has a `file:` that is not a whole path; write it from `/` or \
                                    `~/` on";
                        return Err(self.wrong_at(key, what));
                    }
                    return Ok(Secret::File(path));
                }
                _ => {}
            }
        }
        let full = self.full(text);
        self.without_nul(key, &full)?;
        Ok(Secret::Plain(full))
    }

    /// `~/x` is in the home directory.
    fn at_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.scope.world.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }

    fn without_nul(&self, key: &str, text: &str) -> Result<(), BadEntry> {
        if text.contains('\0') {
            return Err(self.wrong_at(key, "has a NUL character; remove it"));
        }
        Ok(())
    }

    /// For our own file, which is read strictly: a misspelt key must not leave something open.
    pub(super) fn narrowing(&mut self) -> Result<Narrow, BadEntry> {
        self.known_keys()?;
        self.narrow()
    }
}
