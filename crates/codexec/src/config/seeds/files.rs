//! Where the systems that we replace keep settings of their own.

use std::path::{Path, PathBuf};

use codexec_gateway::{Client, Document, read_text};
use codexec_server::Toolset;
use serde_json::Value as Json;

use super::Place;

/// One such file, as it was read.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    pub(crate) value: Json,
    /// Whoever wrote what is in the directory wrote this too: it may not open anything.
    pub(crate) is_project: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", .path.display())]
pub(crate) struct BadFile {
    path: PathBuf,
    what: String,
}

/// Those that are there; what is nearer to the user comes first, and a project's file last.
pub(crate) fn files(
    system: Toolset,
    place: &Place,
    has_project_files: bool,
) -> Result<Vec<SettingsFile>, BadFile> {
    let home = place.user_home.as_deref();
    let at_home = |path: &str| home.map(|home| home.join(path));
    let named = |name: &str| (place.variable)(name).filter(|path| !path.is_empty());
    let mut found = Vec::new();
    match system {
        Toolset::CodeExecutor => {
            if let Some(path) = named("CODE_EXECUTOR_CONFIG_PATH") {
                let path = place.expanded(Path::new(&path));
                found.push(required(&path)?);
            }
            let config = named("XDG_CONFIG_HOME").map(PathBuf::from);
            let config = config.filter(|path| path.is_absolute()).or_else(|| at_home(".config"));
            let users = [
                at_home(".code-executor.json"),
                config.map(|config| config.join("code-executor/config.json")),
                at_home(".code-executor/config.json"),
            ];
            for path in users.into_iter().flatten() {
                found.extend(read(&path)?);
            }
            found.extend(project(place, &found).filter(|_| has_project_files));
        }
        Toolset::Mcpproxy => {
            if let Some(path) = at_home(".mcpproxy/mcp_config.json") {
                found.extend(read(&path)?);
            }
        }
        Toolset::Codexec | Toolset::CodeExecutionMode | Toolset::Compact | Toolset::Direct => {}
    }
    Ok(found)
}

/// A file that somebody named.
pub(crate) fn required(path: &Path) -> Result<SettingsFile, BadFile> {
    let bad = || BadFile { path: path.to_owned(), what: "there is no such file".to_owned() };
    read(path)?.ok_or_else(bad)
}

/// A project cannot keep us from starting, so a bad one is passed over.
fn project(place: &Place, known: &[SettingsFile]) -> Option<SettingsFile> {
    let path = place.here.as_ref()?.join(".code-executor.json");
    if known.iter().any(|file| file.path == path) {
        return None;
    }
    match read(&path) {
        Ok(file) => file.map(|file| SettingsFile { is_project: true, ..file }),
        Err(error) => {
            tracing::warn!(%error, "a project's settings are passed over");
            None
        }
    }
}

fn read(path: &Path) -> Result<Option<SettingsFile>, BadFile> {
    let bad = |what: String| BadFile { path: path.to_owned(), what };
    let client = Client::Mcpproxy;
    let text = match read_text(path, Document::max_bytes(client, path)) {
        Ok(text) => text,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(bad(format!("it cannot be read: {error}"))),
    };
    let value = Document::new(&text, client).into_json().map_err(bad)?;
    if !value.is_object() {
        let what = "it is not an object; write settings in { }".to_owned();
        return Err(BadFile { path: path.to_owned(), what });
    }
    Ok(Some(SettingsFile { path: path.to_owned(), value, is_project: false }))
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}
