//! Entries that start nothing until the user has approved them.

use std::path::{Path, PathBuf};

use codexec_types::Json;
use serde_json::{Map, Value, json};

use super::{Client, Reach, Scope, entry::Entry};
use crate::trust::digest;

/// What the settings say about servers that a project's files name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectServers {
    /// They wait for `codexec servers approve`.
    #[default]
    Ask,
    /// They start like any other.
    Allow,
    /// They are left out.
    Off,
}

/// An entry as it was written, before the user has let its server start.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingEntry {
    /// Stands for the file and the name; the file is not among what a change changes.
    pub(crate) key: String,
    /// Stands for everything that the entry says, and for the files that it refers to.
    pub(crate) fingerprint: String,
    /// For people.
    pub(crate) written: Json,
    /// The user has named the file, or approved the name in Claude Code: the entry is approved as
    /// it is seen first.
    pub(crate) is_named: bool,
    /// What was approved before it, if anything was.
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
    /// Nothing for an entry that is the user's own word.
    ///
    /// THREAT[CFG-6]: a file that came with a project, or that a guest may have written, decides
    /// nothing. Approved is the entry as it is, so that a later change waits again.
    pub(super) fn of(entry: &Entry<'_>) -> Option<PendingEntry> {
        let scope = entry.scope;
        let is_project = scope.reach == Reach::Project;
        let is_asked = is_project && scope.project_servers == ProjectServers::Ask;
        if !is_asked && (is_project || !scope.is_guest_writable) {
            return None;
        }
        let name = entry.written;
        let is_approved = scope.client == Client::ClaudeCode
            && scope.approvals.approved().any(|approved| approved == name);
        let read = entry.gaps.read.iter();
        let read = read.map(|(path, text)| (path.display().to_string(), text.as_str().into()));
        let read: Map<String, Value> = read.collect();
        let mut written = entry.node.clone().into_json();
        let fingerprint = digest(&json!({
            "file": scope.source.as_os_str().as_encoded_bytes(),
            "name": name,
            "entry": written,
            "read": read,
        }));
        if let (Some(fields), false) = (written.as_object_mut(), read.is_empty()) {
            fields.insert("(files that it reads)".to_owned(), Value::Object(read));
        }
        Some(PendingEntry {
            key: key(scope.source, name),
            fingerprint,
            written: Json::from_value(&written),
            is_named: !is_project || is_approved,
            before: None,
        })
    }

    /// Whether another entry of this file and name was approved before.
    pub fn is_change(&self) -> bool {
        self.before.is_some()
    }

    /// The whole entry, or what has changed in it, for a person to read.
    pub fn difference(&self) -> Vec<crate::Line> {
        crate::trust::difference(self.before.as_ref(), Some(&self.written))
    }
}

/// Why an entry of this file is off, whatever it says.
pub(super) fn objection(scope: &Scope<'_>) -> Option<String> {
    let is_off = scope.reach == Reach::Project && scope.project_servers == ProjectServers::Off;
    is_off.then(|| "`discovery.project-servers` is \"off\"".to_owned())
}

/// Stands for a name in a file.
pub(crate) fn key(file: &Path, name: &str) -> String {
    digest(&json!([file.as_os_str().as_encoded_bytes(), name]))
}

/// A file that was read for an entry, with its text.
pub(super) type ReadFile = (PathBuf, String);
