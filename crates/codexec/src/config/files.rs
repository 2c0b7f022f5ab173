//! Which directories code may work in, and which never.

use std::path::{Path, PathBuf};

use codexec_types::{DirRefusal, Files, GuestPaths};

use super::{ConfigError, Place, file, guests::whole, limits};

/// In the home directory: keys, tokens, and what other programs run by themselves.
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

/// The machine's own.
const SYSTEM: &[&str] = &["/etc", "/var", "/proc", "/sys", "/dev", "/boot", "/root"];

pub(super) fn files(file: &file::Files, place: &Place) -> Files {
    let forbidden = forbidden(place);
    let here = [PathBuf::from(".")];
    let allowed = file.allowed.as_deref().unwrap_or(&here);
    let allowed = allowed.iter().filter_map(|entry| real_entry(entry, place, &forbidden)).collect();
    Files { allowed, forbidden, is_writable: file.writable.unwrap_or(true) }
}

/// How much code may write into such a directory, and what of it is not held back.
pub(super) fn written(file: &file::Files) -> Result<codexec_exec::Files, ConfigError> {
    let max_mib = limits::within("files.max-mib", file.max_mib, 1_024, 1..=65_536)?;
    let max_files = limits::within("files.max-files", file.max_files, 100_000, 64..=10_000_000)?;
    let let_through = file.let_through.clone().unwrap_or_default();
    let is_name = |text: &&String| !text.is_empty() && !text.contains('/') && *text != "*";
    if let Some(text) = let_through.iter().find(|text| !is_name(text)) {
        return Err(ConfigError::LetThrough(text.clone()));
    }
    Ok(codexec_exec::Files { max_bytes: max_mib << 20, max_files, let_through })
}

/// What guests may write: `files`, and the directories that one toolset lets requests name.
pub(super) fn guest_paths(
    file: &file::Files,
    files: &Files,
    projects: &[PathBuf],
    place: &Place,
) -> Result<GuestPaths, ConfigError> {
    let mut run_from = Vec::new();
    for path in &file.run_from {
        let path = whole("files.run-from", Some(path), place)?.unwrap_or_default();
        run_from.extend([real(&path), path]);
    }
    let mut files = files.clone();
    files.allowed.extend(projects.iter().map(|project| real(project)));
    Ok(GuestPaths { files, run_from })
}

/// What is never worked in, whatever the settings say; real paths.
fn forbidden(place: &Place) -> Vec<PathBuf> {
    let home = place.user_home.as_deref().map(real);
    let system = SYSTEM.iter().map(|path| real(Path::new(path)));
    // Whoever lives in one of them has only its private parts to lose.
    let system = system.filter(|path| home.as_ref() != Some(path));
    let private = home.iter().flat_map(|home| PRIVATE.iter().map(|name| real(&home.join(name))));
    let mut forbidden: Vec<PathBuf> = system.chain(private).collect();
    forbidden.push(real(&place.state));
    forbidden
}

/// One entry of `files.allowed`, if there is such a directory and some use in it.
fn real_entry(entry: &Path, place: &Place, forbidden: &[PathBuf]) -> Option<PathBuf> {
    let is_here = entry == Path::new(".");
    let here = place.here.as_deref();
    let path = place.expanded(entry);
    let path = if path.is_absolute() { path } else { here?.join(path) };
    let found = match path.canonicalize() {
        Ok(found) if found.is_dir() => found,
        Ok(_) => {
            tracing::warn!("`files.allowed`: {} is left out: it is no directory", path.display());
            return None;
        }
        Err(error) => {
            tracing::warn!(%error, "`files.allowed`: {} is left out", path.display());
            return None;
        }
    };
    let files =
        Files { allowed: vec![found.clone()], forbidden: forbidden.to_vec(), ..Files::default() };
    match files.judge(&found) {
        // A client starts us wherever it likes, also in `/` or at home: that is nobody's word.
        Err(DirRefusal::Forbidden(_)) if is_here => None,
        Err(DirRefusal::Forbidden(by)) if found.starts_with(&by) => {
            tracing::warn!(
                "`files.allowed`: {} is left out: {} may never be used",
                path.display(),
                by.display()
            );
            None
        }
        Ok(_) | Err(DirRefusal::Forbidden(_) | DirRefusal::NotAllowed(_)) => Some(found),
    }
}

/// The path without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    for (index, ancestor) in path.ancestors().enumerate() {
        if let Ok(found) = ancestor.canonicalize() {
            let depth = path.components().count();
            return found.components().chain(path.components().skip(depth - index)).collect();
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests;
