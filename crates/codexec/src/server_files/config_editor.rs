//! Edits `config.toml`: comments and order stay, and the file is replaced atomically.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use codexec_files::private_files;
use codexec_types::ServerName;
use toml_edit::{DocumentMut, Item, RawString, Table, TableLike, Value};

/// `config.toml`, open for changes.
pub(crate) struct ConfigEditor {
    path: PathBuf,
    document: DocumentMut,
}

impl ConfigEditor {
    pub(crate) fn open(path: &Path) -> anyhow::Result<ConfigEditor> {
        // Writes through a link, for example into a dotfiles folder, instead of replacing it.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context(path.display().to_string()),
        };
        let document = text.parse().with_context(|| path.display().to_string())?;
        Ok(ConfigEditor { path, document })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn has(&self, name: &ServerName) -> bool {
        self.entry(name).is_some()
    }

    /// Returns true if the file defines the server (`command` or `url`), not only narrows it.
    pub(crate) fn defines(&self, name: &ServerName) -> bool {
        self.entry(name)
            .is_some_and(|entry| entry.contains_key("command") || entry.contains_key("url"))
    }

    /// Returns true if the file disables the server.
    pub(crate) fn disables(&self, name: &ServerName) -> bool {
        let enabled = self.entry(name).and_then(|entry| entry.get("enabled"));
        enabled.and_then(Item::as_bool) == Some(false)
    }

    pub(crate) fn insert(&mut self, name: &ServerName, entry: Table) -> anyhow::Result<()> {
        self.servers()?.insert(name.as_str(), Item::Table(entry));
        Ok(())
    }

    pub(crate) fn remove(&mut self, name: &ServerName) -> anyhow::Result<()> {
        self.servers()?.remove(name.as_str());
        Ok(())
    }

    /// Sets `enabled` of a server; `None` removes the key.
    pub(crate) fn set_enabled(
        &mut self,
        name: &ServerName,
        enabled: Option<bool>,
    ) -> anyhow::Result<()> {
        let path = self.path.display().to_string();
        let entry = self.servers()?.entry(name.as_str()).or_insert(Item::Table(Table::new()));
        let Some(entry) = entry.as_table_like_mut() else {
            bail!("{path}: `servers.{name}` is not a table; repair it first");
        };
        match enabled {
            Some(enabled) => {
                entry.insert("enabled", Item::Value(Value::from(enabled)));
            }
            None => {
                entry.remove("enabled");
            }
        }
        Ok(())
    }

    /// Removes `enabled` of a server, and everything that only held it.
    pub(crate) fn clear_enabled(&mut self, name: &ServerName) -> anyhow::Result<()> {
        if !self.has(name) {
            return Ok(());
        }
        self.set_enabled(name, None)?;
        let has_comment = self.entry_has_comment(name);
        if !has_comment && self.entry(name).is_some_and(TableLike::is_empty) {
            self.servers()?.remove(name.as_str());
        }
        let servers = self.document.get("servers").and_then(Item::as_table);
        if servers.is_some_and(|servers| servers.is_empty() && servers.is_implicit()) {
            self.document.remove("servers");
        }
        Ok(())
    }

    /// True if the user has written a comment above the entry.
    fn entry_has_comment(&self, name: &ServerName) -> bool {
        let entry = self.document.get("servers").and_then(|servers| servers.get(name.as_str()));
        let prefix = entry.and_then(Item::as_table).and_then(|table| table.decor().prefix());
        prefix.and_then(RawString::as_str).is_some_and(|prefix| !prefix.trim().is_empty())
    }

    pub(crate) fn text(&self) -> String {
        self.document.to_string()
    }

    pub(crate) fn write(&self) -> anyhow::Result<()> {
        let shown = || format!("cannot write {}", self.path.display());
        if self.text().trim().is_empty() {
            return match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(error).with_context(shown)
                }
                Ok(()) | Err(_) => Ok(()),
            };
        }
        private_files::replace(&self.path, self.text().as_bytes()).map(drop).with_context(shown)
    }

    fn entry(&self, name: &ServerName) -> Option<&dyn TableLike> {
        self.document.get("servers")?.as_table_like()?.get(name.as_str())?.as_table_like()
    }

    fn servers(&mut self) -> anyhow::Result<&mut dyn TableLike> {
        let path = self.path.display().to_string();
        let mut servers = Table::new();
        servers.set_implicit(true);
        let servers = self.document.entry("servers").or_insert(Item::Table(servers));
        match servers.as_table_like_mut() {
            Some(servers) => Ok(servers),
            None => bail!("{path}: `servers` is not a table; repair it first"),
        }
    }
}

#[cfg(test)]
mod tests;
