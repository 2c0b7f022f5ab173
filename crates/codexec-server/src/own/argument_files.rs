//! Files that the arguments of a script name: the script gets the directory that they are in.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use codexec_types::{Language, WorkingDirPolicy};

use crate::ExecutionRequest;

/// Timeout for files that hang, e.g. on a network file system.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of arguments that are looked up.
const MAX_LOOKUPS: usize = 32;

/// Makes existing files visible that the arguments name by absolute paths or paths from `~` on: the
/// script works in their directory, and gets their real paths. Only for requests without a
/// `working_dir`; files outside the allowed directories stay invisible.
pub(super) async fn show_argument_files(request: &mut ExecutionRequest, files: &WorkingDirPolicy) {
    let has_files = match request.language {
        Language::Python | Language::Bash | Language::Node => true,
        Language::JavaScript | Language::TypeScript => false,
    };
    let is_path = |arg: &String| arg.starts_with('/') || arg.starts_with("~/");
    if !has_files || request.working_dir.is_some() || !request.args.iter().any(is_path) {
        return;
    }
    let (args, files) = (request.args.clone(), files.clone());
    let locating = tokio::task::spawn_blocking(move || locate(args, &files));
    if let Ok(Ok(Some((dir, args)))) = tokio::time::timeout(LOOKUP_TIMEOUT, locating).await {
        (request.working_dir, request.args) = (Some(dir), args);
    }
}

/// Returns the innermost directory with all the files, and the arguments with their real paths.
fn locate(mut args: Vec<String>, policy: &WorkingDirPolicy) -> Option<(PathBuf, Vec<String>)> {
    let found: Vec<(usize, PathBuf)> = (args.iter().enumerate().take(MAX_LOOKUPS))
        .filter_map(|(at, arg)| Some((at, find_file(arg, policy)?)))
        .collect();
    let holds_all = |dir: &&Path| found.iter().all(|(_, file)| file.starts_with(dir));
    let (_, first) = found.first()?;
    let dir = first.ancestors().skip(1).find(holds_all)?.to_owned();
    policy.check(&dir).ok()?;
    for (at, file) in found {
        if let (Some(arg), Some(path)) = (args.get_mut(at), file.to_str()) {
            path.clone_into(arg);
        }
    }
    Some((dir, args))
}

/// Returns the path of an existing file in an allowed directory, without symlinks above it.
fn find_file(arg: &str, policy: &WorkingDirPolicy) -> Option<PathBuf> {
    let path = policy.expand_home(Path::new(arg));
    let has_parent = path.components().any(|component| component == Component::ParentDir);
    if !path.is_absolute() || has_parent {
        return None;
    }
    let dir = path.parent()?.canonicalize().ok()?;
    policy.check(&dir).ok()?;
    let file = dir.join(path.file_name()?);
    file.symlink_metadata().ok()?.is_file().then_some(file)
}

#[cfg(test)]
mod tests;
