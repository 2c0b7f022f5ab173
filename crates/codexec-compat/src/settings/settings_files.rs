//! The settings files of the seeds, the systems that codexec replaces.

use std::path::{Path, PathBuf};

use crate::{Seed, UserEnvironment};
use codexec_files::read_text;
use codexec_mcp_config::{ConfigDocument, ConfigOwner};
use serde_json::Value as Json;

/// A parsed settings file of a seed.
#[derive(Debug)]
pub struct SettingsFile {
    pub path: PathBuf,
    pub value: Json,
    /// True for a file in the current directory. The author of the project wrote it, so it may only
    /// narrow settings.
    pub is_project: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", .path.display())]
pub struct SettingsFileError {
    path: PathBuf,
    what: String,
}

/// Reads the files that exist, in order of precedence; the project's file comes last.
pub(crate) fn read_files(
    seed: Seed,
    host: &UserEnvironment,
    has_project_files: bool,
) -> Result<Vec<SettingsFile>, SettingsFileError> {
    let home = host.home.as_deref();
    let at_home = |path: &str| home.map(|home| home.join(path));
    let named = |name: &str| (host.variable)(name).filter(|path| !path.is_empty());
    let mut found = Vec::new();
    match seed {
        Seed::CodeExecutor => {
            if let Some(path) = named("CODE_EXECUTOR_CONFIG_PATH") {
                let path = host.expand_home(Path::new(&path));
                found.push(read_required(&path)?);
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
            found.extend(read_project_file(host, &found).filter(|_| has_project_files));
        }
        Seed::Mcpproxy => {
            if let Some(path) = at_home(".mcpproxy/mcp_config.json") {
                found.extend(read(&path)?);
            }
        }
        Seed::Codexec | Seed::CodeExecutionMode => {}
    }
    Ok(found)
}

/// Reads a file that the user named.
pub(crate) fn read_required(path: &Path) -> Result<SettingsFile, SettingsFileError> {
    let bad =
        || SettingsFileError { path: path.to_owned(), what: "there is no such file".to_owned() };
    read(path)?.ok_or_else(bad)
}

/// Reads the project's file. An invalid one is ignored: a project must not prevent the start.
fn read_project_file(host: &UserEnvironment, known: &[SettingsFile]) -> Option<SettingsFile> {
    let path = host.current_dir.as_ref()?.join(".code-executor.json");
    if known.iter().any(|file| file.path == path) {
        return None;
    }
    match read(&path) {
        Ok(file) => file.map(|file| SettingsFile { is_project: true, ..file }),
        Err(error) => {
            tracing::warn!(%error, "invalid project settings are ignored");
            None
        }
    }
}

fn read(path: &Path) -> Result<Option<SettingsFile>, SettingsFileError> {
    let bad = |what: String| SettingsFileError { path: path.to_owned(), what };
    let client = ConfigOwner::Mcpproxy;
    let text = match read_text(path, ConfigDocument::max_bytes(client, path)) {
        Ok(text) => text,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(bad(format!("it cannot be read: {error}"))),
    };
    let value = ConfigDocument::new(&text, client).into_json().map_err(bad)?;
    if !value.is_object() {
        let what = "not a JSON object; write the settings in { }".to_owned();
        return Err(SettingsFileError { path: path.to_owned(), what });
    }
    Ok(Some(SettingsFile { path: path.to_owned(), value, is_project: false }))
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}
