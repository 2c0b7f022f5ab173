//! The project's own rules. Each finding says where, what is wrong, and what to do.

use std::{fs, io, path::Path};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{step, workspace::Workspace};

mod crates;
mod dependencies;
mod documents;
mod sources;
mod threats;

/// A text file of the repository; its path is relative to the root, with `/`.
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Generated or third-party files and folders.
const SKIPPED: &[&str] = &[".git", "target", "node_modules", "Cargo.lock"];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let files = files(&workspace.root)?;
    let mut findings = crates::check(&workspace.metadata);
    let deny = files.iter().find(|file| file.path == "deny.toml");
    let deny = deny.map(|file| file.text.as_str()).unwrap_or_default();
    findings.extend(dependencies::check(&workspace.read_dependencies()?, deny));
    findings.extend(sources::check(&files));
    findings.extend(threats::check(&files));
    findings.extend(documents::check(&files));
    for finding in &findings {
        step::say(finding);
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("tidy has 1 finding"),
        many => bail!("tidy has {many} findings"),
    }
}

fn files(root: &Path) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries = fs::read_dir(&folder)
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .with_context(|| format!("{} cannot be read", folder.display()))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let kind = entry.file_type()?;
            if SKIPPED.iter().any(|skipped| name == *skipped) || kind.is_symlink() {
                continue;
            } else if kind.is_dir() {
                folders.push(entry.path());
            } else if let Some(file) = read(root, &entry.path()) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// Returns the text of a field of `cargo metadata`, or an empty text.
fn text_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Reads a file; `None` if it is not UTF-8.
fn read(root: &Path, path: &Path) -> Option<TextFile> {
    let text = fs::read_to_string(path).ok()?;
    let path = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    Some(TextFile { path, text })
}

impl TextFile {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    fn is_test(&self) -> bool {
        self.name() == "tests.rs" || self.path.split('/').any(|part| part == "tests")
    }
}

#[cfg(test)]
mod tests;
