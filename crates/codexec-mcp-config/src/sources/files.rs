//! Which files there are, and how each is read.

use std::path::{Path, PathBuf};

use codexec_files::read_text;

use super::ServerSources;
use crate::{
    ConfigDocument, ConfigOwner,
    client::ConfigScope,
    locations::{ConfigLocation, LocationEnv, LocationKind, find_config_locations},
};

/// The most files that are read from one folder.
const MAX_FILES: usize = 200;

impl ServerSources {
    /// Returns all files, in ascending order of precedence; folders are expanded.
    pub(super) fn source_files(&self) -> Vec<ConfigLocation> {
        let whereabouts = self.whereabouts();
        let mut found = Vec::new();
        for place in find_config_locations(&self.rules.discovery.clients, &whereabouts) {
            if place.reach == ConfigScope::Project && !self.rules.discovery.has_project_files {
                continue;
            }
            match place.holds {
                LocationKind::File => found.push(place),
                LocationKind::Files => found.extend(list_json_files(&place)),
            }
        }
        let holds = LocationKind::File;
        let own = ConfigLocation {
            client: ConfigOwner::Codexec,
            reach: ConfigScope::Own,
            path: self.own.clone(),
            holds,
        };
        let named = self.named.iter().cloned();
        let named = named.map(|path| ConfigLocation {
            client: ConfigOwner::Named,
            reach: ConfigScope::Named,
            path,
            holds,
        });
        found.into_iter().chain([own]).chain(named).collect()
    }

    pub(super) fn whereabouts(&self) -> LocationEnv<'_> {
        LocationEnv {
            home: self.host.user_home.as_deref(),
            here: self.host.here.as_deref(),
            variable: &self.host.variable,
        }
    }

    /// Returns true if a command is codexec's own binary, under any name or link.
    pub(super) fn is_own_program(&self, command: &str) -> bool {
        let is_own = |path: &Path| path.canonicalize().is_ok_and(|real| real == self.program);
        if command.contains('/') {
            return is_own(Path::new(command));
        }
        std::env::split_paths(&self.host.path)
            .map(|folder| folder.join(command))
            .find(|path| path.is_file())
            .is_some_and(|path| is_own(&path))
    }

    /// Returns the files and folders whose changes can change the servers.
    pub fn paths_to_watch(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let whereabouts = self.whereabouts();
        let (files, folders): (Vec<ConfigLocation>, Vec<ConfigLocation>) =
            find_config_locations(&self.rules.discovery.clients, &whereabouts)
                .into_iter()
                .partition(|place| place.holds == LocationKind::File);
        let mut files: Vec<PathBuf> = files.into_iter().map(|place| place.path).collect();
        if self.rules.discovery.clients.contains(&ConfigOwner::ClaudeCode) {
            files.extend(whereabouts.claude_settings());
        }
        files.push(self.own.clone());
        files.extend(self.named.iter().cloned());
        // Relative paths are fixed now, so that a later chdir does not change their meaning.
        let whole = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let folders = folders.into_iter().map(|place| place.path);
        let approvals = self.rules.approvals.iter().map(|kept| kept.folder().to_owned());
        (files.into_iter().map(whole).collect(), folders.chain(approvals).collect())
    }
}

pub(super) fn read_document(place: &ConfigLocation) -> Option<Result<ConfigDocument, String>> {
    let (path, client) = (&place.path, place.client);
    match read_text(path, ConfigDocument::max_bytes(client, path)) {
        Ok(text) => Some(Ok(ConfigDocument::from_file(path, &text, client))),
        Err(error) if is_absent(&error) && client != ConfigOwner::Named => None,
        Err(error) => Some(Err(format!("it cannot be read: {error}"))),
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn list_json_files(folder: &ConfigLocation) -> Vec<ConfigLocation> {
    let Ok(entries) = std::fs::read_dir(&folder.path) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    paths.sort();
    paths.truncate(MAX_FILES);
    let place = |path| ConfigLocation { path, holds: LocationKind::File, ..folder.clone() };
    paths.into_iter().map(place).collect()
}
