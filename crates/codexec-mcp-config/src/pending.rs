//! Entries whose servers do not start until the user approves them.

use std::path::{Path, PathBuf};

use codexec_files::hash_json;
use codexec_types::Json;
use serde_json::{Map, Value, json};

use super::{ConfigOwner, ConfigScope, ConfigSource, entry::ConfigEntry};
use crate::difference::{DiffLine, find_differences};

/// The setting for servers that a project's files define.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectServers {
    /// They start after `codexec servers approve`.
    #[default]
    Ask,
    /// They start like any other server.
    Allow,
    /// They are ignored.
    Off,
}

/// An entry that the user has not approved yet.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingEntry {
    /// A hash of the file's path and the server's name; a changed entry keeps its key.
    pub(crate) key: String,
    /// A hash of everything in the entry, and of the files that it refers to.
    pub(crate) fingerprint: String,
    /// The entry, for display.
    pub(crate) written: Json,
    /// The user has named the file, or approved the name in Claude Code: the entry is approved
    /// when it is first seen.
    pub(crate) is_named: bool,
    /// The entry of this file and name that was approved before, if any.
    pub(crate) before: Option<Json>,
}

impl ProjectServers {
    pub const ALL: [ProjectServers; 3] =
        [ProjectServers::Ask, ProjectServers::Allow, ProjectServers::Off];

    pub fn name(self) -> &'static str {
        match self {
            ProjectServers::Ask => "ask",
            ProjectServers::Allow => "allow",
            ProjectServers::Off => "off",
        }
    }

    pub fn parse(name: &str) -> Option<ProjectServers> {
        ProjectServers::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl PendingEntry {
    /// Returns a hash of everything in the entry, and of the files that it refers to.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns `None` for an entry from a file that only the user writes.
    ///
    /// THREAT[CFG-6]: a file that came with a project, or that a guest may have written, starts
    /// nothing by itself. An approval is for the exact entry; a changed entry needs another one.
    pub(super) fn of(entry: &ConfigEntry<'_>) -> Option<PendingEntry> {
        let scope = entry.scope;
        let is_project = scope.reach == ConfigScope::Project;
        let needs_approval = is_project && scope.project_servers == ProjectServers::Ask;
        if !needs_approval && (is_project || !scope.is_guest_writable) {
            return None;
        }
        let name = entry.written;
        let is_approved = scope.client == ConfigOwner::ClaudeCode
            && scope.approvals.approved_names().any(|approved| approved == name);
        let files = entry.expansion.files.iter();
        let files = files.map(|(path, text)| (path.display().to_string(), text.as_str().into()));
        let files: Map<String, Value> = files.collect();
        let mut written = entry.node.clone().into_json();
        let fingerprint = hash_json(&json!({
            "file": scope.source.as_os_str().as_encoded_bytes(),
            "name": name,
            "entry": written,
            "read": files,
        }));
        if let (Some(fields), false) = (written.as_object_mut(), files.is_empty()) {
            fields.insert("(files that it reads)".to_owned(), Value::Object(files));
        }
        Some(PendingEntry {
            key: approval_key(scope.source, name),
            fingerprint,
            written: Json::from_value(&written),
            is_named: !is_project || is_approved,
            before: None,
        })
    }

    /// Returns true if another entry of this file and name was approved before.
    pub fn is_change(&self) -> bool {
        self.before.is_some()
    }

    /// Returns the whole entry, or its changes since the approved one, for display.
    pub fn diff_lines(&self) -> Vec<DiffLine> {
        find_differences(self.before.as_ref(), Some(&self.written))
    }
}

/// Returns why every entry of this file is disabled, if the settings disable it.
pub(super) fn disabled_reason(scope: &ConfigSource<'_>) -> Option<String> {
    let is_off =
        scope.reach == ConfigScope::Project && scope.project_servers == ProjectServers::Off;
    is_off.then(|| "`discovery.project-servers` is \"off\"".to_owned())
}

/// Returns the key of an approval: a hash of the file's path and the server's name.
pub(crate) fn approval_key(file: &Path, name: &str) -> String {
    hash_json(&json!([file.as_os_str().as_encoded_bytes(), name]))
}

/// A file that an entry refers to, with its text.
pub(super) type ReadFile = (PathBuf, String);
