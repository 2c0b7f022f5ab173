//! `permissions`: the directories that code requests. One can be given, read-only or writable;
//! everything else is refused with the reason, so that no request is mistaken for a permission.

use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_server::{DirError, FieldError, Fields, escape_name, resolve_dir};
use codexec_types::{Language, Policy, WorkingDirPolicy};
use serde_json::Value;

use super::refusal::ExecutorRefusal;
use super::settings::ExecutorSettings;

const MAX_PATHS: usize = 20;
/// Timeout for a directory that hangs, e.g. on a network file system.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The requested directories.
#[derive(Default)]
pub(super) struct Permissions {
    read: Vec<String>,
    write: Vec<String>,
}

impl Permissions {
    pub(super) fn read(value: Option<Value>) -> Result<Permissions, ExecutorRefusal> {
        let fields = match value {
            None | Some(Value::Null) => return Ok(Permissions::default()),
            Some(Value::Object(fields)) => fields,
            Some(_) => {
                return Err(ExecutorRefusal::validation(
                    "permissions: it must be an object with read, write and net",
                ));
            }
        };
        let mut fields = Fields::new(fields);
        let mut paths = |field: &'static str| {
            let paths =
                fields.texts(field).map_err(|error| permissions_error(&error))?.unwrap_or_default();
            match paths.len() {
                0..=MAX_PATHS => Ok(paths),
                count => Err(ExecutorRefusal::validation(format!(
                    "permissions.{field}: there are {count}; at most {MAX_PATHS} are allowed"
                ))),
            }
        };
        let (read, write, net) = (paths("read")?, paths("write")?, paths("net")?);
        fields.finish().map_err(|error| permissions_error(&error))?;
        if !net.is_empty() {
            let error = "permissions.net: code has no network here, and none can be given";
            return Err(ExecutorRefusal::security(error)
                .suggesting("leave net out; call a tool of an MCP server that fetches instead"));
        }
        Ok(Permissions { read, write })
    }

    /// Returns the directory to work in, and the rules that allow it.
    pub(super) async fn resolve(
        &self,
        settings: &ExecutorSettings,
        policy: &Policy,
        language: Language,
    ) -> Result<Option<(PathBuf, WorkingDirPolicy)>, ExecutorRefusal> {
        let field = match (self.read.is_empty(), self.write.is_empty()) {
            (true, true) => return Ok(None),
            (false, _) => "permissions.read",
            (true, false) => "permissions.write",
        };
        if language != Language::Python {
            return Err(ExecutorRefusal::security(format!(
                "{field}: {language} code has no files here"
            ))
            .suggesting("use executePython, or call a tool of an MCP server for files"));
        }
        if !self.write.is_empty() && !policy.files.is_writable {
            let error = "permissions.write: directories are only to be read (`files.writable = \
                         false` in config.toml)";
            return Err(ExecutorRefusal::security(error));
        }
        let projects = canonicalize_all(settings.projects.clone()).await;
        let files = WorkingDirPolicy {
            allowed: projects,
            forbidden: policy.files.forbidden.clone(),
            is_writable: !self.write.is_empty(),
            home: policy.files.home.clone(),
        };
        let read = resolve_paths("permissions.read", &self.read, &files).await?;
        let write = resolve_paths("permissions.write", &self.write, &files).await?;
        Ok(Some((common_directory(&read, &write)?, files)))
    }
}

/// Returns the one requested directory that contains all the others.
fn common_directory(read: &[PathBuf], write: &[PathBuf]) -> Result<PathBuf, ExecutorRefusal> {
    let candidates = if write.is_empty() { read } else { write };
    let holds = |top: &&PathBuf| read.iter().chain(write).all(|path| path.starts_with(top));
    candidates.iter().find(holds).cloned().ok_or_else(|| {
        let error = "permissions: one directory can be given to an execution, to read or also to \
                     write, with all that is below it; these are several";
        ExecutorRefusal::security(error)
            .suggesting("name one directory, or run the code once for each of them")
    })
}

async fn resolve_paths(
    field: &str,
    paths: &[String],
    files: &WorkingDirPolicy,
) -> Result<Vec<PathBuf>, ExecutorRefusal> {
    let mut found = Vec::new();
    for path in paths {
        let refused = || {
            let path = escape_name(path);
            ExecutorRefusal::security(format!(
                "{field}: \"{path}\" is not below {}",
                list_allowed(files)
            ))
            .suggesting("ALLOWED_PROJECTS names the directories that code may be given")
        };
        let dir = resolve_dir(PathBuf::from(path), files).await.map_err(|error| match error {
            DirError::Refused(_) => refused(),
            error => {
                let error = error.to_string();
                let sentence = error.strip_prefix("working_dir: ").unwrap_or(&error);
                ExecutorRefusal::validation(format!("{field}: {sentence}"))
            }
        })?;
        files.check(&dir.path).map_err(|_| refused())?;
        found.push(dir.path);
    }
    Ok(found)
}

fn list_allowed(files: &WorkingDirPolicy) -> String {
    match files.allowed.as_slice() {
        [] => "an allowed directory: none is set".to_owned(),
        paths => {
            let shown = |path: &PathBuf| escape_name(&path.to_string_lossy());
            paths.iter().map(shown).collect::<Vec<_>>().join(" or ")
        }
    }
}

/// Resolves symlinks; missing directories are left out.
async fn canonicalize_all(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let look = move || {
        let is_absolute = |path: &&PathBuf| path.is_absolute();
        paths.iter().filter(is_absolute).filter_map(|path| Path::canonicalize(path).ok()).collect()
    };
    let looking = tokio::task::spawn_blocking(look);
    match tokio::time::timeout(LOOKUP_TIMEOUT, looking).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

fn permissions_error(error: &FieldError) -> ExecutorRefusal {
    ExecutorRefusal::validation(format!("permissions.{error}"))
}
