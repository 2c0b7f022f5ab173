//! `permissions`: the directories that code requests. One can be given, read-only or writable;
//! everything else is refused with the reason, so that no request is mistaken for a permission.

use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_types::{Files, Language};
use serde_json::Value;

use super::refusal::Refusal;
use crate::App;
use crate::fields::Fields;
use crate::plain::plain;
use crate::working_dir::find;

const MAX_PATHS: usize = 20;
/// Timeout for a directory that hangs, e.g. on a network file system.
const PATIENCE: Duration = Duration::from_secs(5);

/// The requested directories.
#[derive(Default)]
pub(super) struct Asked {
    read: Vec<String>,
    write: Vec<String>,
}

impl Asked {
    pub(super) fn read(value: Option<Value>) -> Result<Asked, Refusal> {
        let fields = match value {
            None | Some(Value::Null) => return Ok(Asked::default()),
            Some(Value::Object(fields)) => fields,
            Some(_) => {
                return Err(Refusal::validation(
                    "permissions: it must be an object with read, write and net",
                ));
            }
        };
        let mut fields = Fields::new(fields);
        let mut paths = |field: &'static str| {
            let paths = fields.texts(field).map_err(|error| below(&error))?.unwrap_or_default();
            match paths.len() {
                0..=MAX_PATHS => Ok(paths),
                count => Err(Refusal::validation(format!(
                    "permissions.{field}: there are {count}; at most {MAX_PATHS} are allowed"
                ))),
            }
        };
        let (read, write, net) = (paths("read")?, paths("write")?, paths("net")?);
        fields.finish().map_err(|error| below(&error))?;
        if !net.is_empty() {
            let error = "permissions.net: code has no network here, and none can be given";
            return Err(Refusal::security(error)
                .suggesting("leave net out; call a tool of an MCP server that fetches instead"));
        }
        Ok(Asked { read, write })
    }

    /// Returns the directory to work in, and the rules that allow it.
    pub(super) async fn granted(
        &self,
        app: &App,
        language: Language,
    ) -> Result<Option<(PathBuf, Files)>, Refusal> {
        let field = match (self.read.is_empty(), self.write.is_empty()) {
            (true, true) => return Ok(None),
            (false, _) => "permissions.read",
            (true, false) => "permissions.write",
        };
        if language != Language::Python {
            return Err(Refusal::security(format!("{field}: {language} code has no files here"))
                .suggesting("use executePython, or call a tool of an MCP server for files"));
        }
        let policy = app.in_force.policy();
        if !self.write.is_empty() && !policy.files.is_writable {
            let error = "permissions.write: directories are only to be read (`files.writable = \
                         false` in config.toml)";
            return Err(Refusal::security(error));
        }
        let projects = real(app.seeds.executor.projects.clone()).await;
        let files = Files {
            allowed: projects,
            forbidden: policy.files.forbidden.clone(),
            is_writable: !self.write.is_empty(),
        };
        let read = found("permissions.read", &self.read, &files).await?;
        let write = found("permissions.write", &self.write, &files).await?;
        Ok(Some((one(&read, &write)?, files)))
    }
}

/// Returns the one requested directory that contains all the others.
fn one(read: &[PathBuf], write: &[PathBuf]) -> Result<PathBuf, Refusal> {
    let candidates = if write.is_empty() { read } else { write };
    let holds = |top: &&PathBuf| read.iter().chain(write).all(|path| path.starts_with(top));
    candidates.iter().find(holds).cloned().ok_or_else(|| {
        let error = "permissions: one directory can be given to an execution, to read or also to \
                     write, with all that is below it; these are several";
        Refusal::security(error)
            .suggesting("name one directory, or run the code once for each of them")
    })
}

async fn found(field: &str, paths: &[String], files: &Files) -> Result<Vec<PathBuf>, Refusal> {
    let mut found = Vec::new();
    for path in paths {
        let refused = || {
            let path = plain(path);
            Refusal::security(format!("{field}: \"{path}\" is not below {}", allowed(files)))
                .suggesting("ALLOWED_PROJECTS names the directories that code may be given")
        };
        let dir = find(PathBuf::from(path), files).await.map_err(|error| match error {
            crate::DirError::Refused(_) => refused(),
            error => {
                let error = error.to_string();
                let sentence = error.strip_prefix("working_dir: ").unwrap_or(&error);
                Refusal::validation(format!("{field}: {sentence}"))
            }
        })?;
        files.judge(&dir.path).map_err(|_| refused())?;
        found.push(dir.path);
    }
    Ok(found)
}

fn allowed(files: &Files) -> String {
    match files.allowed.as_slice() {
        [] => "an allowed directory: none is set".to_owned(),
        paths => {
            let shown = |path: &PathBuf| plain(&path.to_string_lossy());
            paths.iter().map(shown).collect::<Vec<_>>().join(" or ")
        }
    }
}

/// Resolves symlinks; missing directories are left out.
async fn real(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let look = move || {
        let is_whole = |path: &&PathBuf| path.is_absolute();
        paths.iter().filter(is_whole).filter_map(|path| Path::canonicalize(path).ok()).collect()
    };
    let looking = tokio::task::spawn_blocking(look);
    match tokio::time::timeout(PATIENCE, looking).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

fn below(error: &crate::fields::FieldError) -> Refusal {
    Refusal::validation(format!("permissions.{error}"))
}
