//! The directories that code may work in, and those that are always forbidden.

use std::path::{Path, PathBuf};

use codexec_types::{DirRefusal, GuestPaths, WorkingDirPolicy};

use super::{ConfigError, HostEnvironment, file, guests::absolute_path, limits};

/// Folders in the home directory with keys, tokens, or files that programs run automatically.
const PRIVATE: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".config",
    ".kube",
    ".docker",
    ".local/share/keyrings",
    ".claude",
    ".cline",
    ".codeium",
    ".codex",
    ".copilot",
    ".cursor",
    ".gemini",
];

/// System directories.
const SYSTEM: &[&str] = &["/etc", "/var", "/proc", "/sys", "/dev", "/boot", "/root"];

pub(super) fn files(file: &file::FilesSection, host: &HostEnvironment) -> WorkingDirPolicy {
    let forbidden = forbidden_paths(host);
    let here = [PathBuf::from(".")];
    let allowed = file.allowed.as_deref().unwrap_or(&here);
    let allowed =
        allowed.iter().filter_map(|entry| resolve_entry(entry, host, &forbidden)).collect();
    WorkingDirPolicy {
        allowed,
        forbidden,
        is_writable: file.writable.unwrap_or(true),
        home: host.user_home.clone(),
    }
}

/// Returns how much code may write into such a directory, and which names are not held back.
pub(super) fn commit_limits(
    file: &file::FilesSection,
) -> Result<codexec_exec::FileSettings, ConfigError> {
    let max_mib = limits::within("files.max-mib", file.max_mib, 1_024, 1..=65_536)?;
    let max_files = limits::within("files.max-files", file.max_files, 100_000, 64..=10_000_000)?;
    let let_through = file.let_through.clone().unwrap_or_default();
    let is_name = |text: &&String| !text.is_empty() && !text.contains('/') && *text != "*";
    if let Some(text) = let_through.iter().find(|text| !is_name(text)) {
        return Err(ConfigError::LetThrough(text.clone()));
    }
    Ok(codexec_exec::FileSettings { max_bytes: max_mib << 20, max_files, let_through })
}

/// Returns the paths that guests may write: `files`, and the directories that requests of the
/// toolset `code-executor` may name.
pub(super) fn guest_paths(
    file: &file::FilesSection,
    files: &WorkingDirPolicy,
    projects: &[PathBuf],
    host: &HostEnvironment,
) -> Result<GuestPaths, ConfigError> {
    let mut run_from = Vec::new();
    for path in &file.run_from {
        let path = absolute_path("files.run-from", Some(path), host)?.unwrap_or_default();
        run_from.extend([resolve_links(&path), path]);
    }
    let mut files = files.clone();
    files.allowed.extend(projects.iter().map(|project| resolve_links(project)));
    Ok(GuestPaths { files, run_from })
}

/// Returns the canonical paths that are forbidden whatever the settings say.
fn forbidden_paths(host: &HostEnvironment) -> Vec<PathBuf> {
    let home = host.user_home.as_deref().map(resolve_links);
    let system = SYSTEM.iter().map(|path| resolve_links(Path::new(path)));
    // If the home directory is one of them, like `/root`, only its private folders are forbidden.
    let system = system.filter(|path| home.as_ref() != Some(path));
    let private =
        home.iter().flat_map(|home| PRIVATE.iter().map(|name| resolve_links(&home.join(name))));
    let mut forbidden: Vec<PathBuf> = system.chain(private).collect();
    forbidden.push(resolve_links(&host.state_dir));
    forbidden
}

/// Returns the canonical path of one entry of `files.allowed`, if it is a usable directory.
fn resolve_entry(entry: &Path, host: &HostEnvironment, forbidden: &[PathBuf]) -> Option<PathBuf> {
    let is_here = entry == Path::new(".");
    let here = host.current_dir.as_deref();
    let path = host.expand_home(entry);
    let path = if path.is_absolute() { path } else { here?.join(path) };
    let resolved = match path.canonicalize() {
        Ok(resolved) if resolved.is_dir() => resolved,
        Ok(_) => {
            tracing::warn!("`files.allowed`: {} is ignored: not a directory", path.display());
            return None;
        }
        Err(error) => {
            tracing::warn!(%error, "`files.allowed`: {} is ignored", path.display());
            return None;
        }
    };
    let files = WorkingDirPolicy {
        allowed: vec![resolved.clone()],
        forbidden: forbidden.to_vec(),
        ..WorkingDirPolicy::default()
    };
    match files.check(&resolved) {
        // Clients start codexec in any directory, also in `/` or the home directory. The user did
        // not choose that one, so it is dropped without a warning.
        Err(DirRefusal::Forbidden(_)) if is_here => None,
        Err(DirRefusal::Forbidden(by)) if resolved.starts_with(&by) => {
            tracing::warn!(
                "`files.allowed`: {} is ignored: {} is never allowed",
                path.display(),
                by.display()
            );
            None
        }
        Ok(_) | Err(DirRefusal::Forbidden(_) | DirRefusal::NotAllowed(_)) => Some(resolved),
    }
}

/// Resolves links in the part of the path that exists.
fn resolve_links(path: &Path) -> PathBuf {
    for (index, ancestor) in path.ancestors().enumerate() {
        if let Ok(resolved) = ancestor.canonicalize() {
            let depth = path.components().count();
            return resolved.components().chain(path.components().skip(depth - index)).collect();
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests;
