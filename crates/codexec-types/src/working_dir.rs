use std::path::{Path, PathBuf};

/// The user's directories that an execution may work in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkingDirPolicy {
    /// These directories and everything below them; real paths without symlinks.
    pub allowed: Vec<PathBuf>,
    /// Excludes these paths, and everything below or above them. Overrides `allowed`.
    pub forbidden: Vec<PathBuf>,
    pub is_writable: bool,
    /// The user's home directory, for paths that begin with `~`.
    pub home: Option<PathBuf>,
}

/// A resolved directory. The directory that is mounted later must have the same device and inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedDir {
    /// The real path, without symlinks.
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    pub uid: u32,
    pub gid: u32,
}

/// The directory that an execution works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingDir {
    pub found: ResolvedDir,
    pub is_writable: bool,
    /// The directory of the settings that this one is, or is below of.
    pub allowed: PathBuf,
}

/// The reason why a directory may not be used as working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirRefusal {
    /// The directory is this path, or below or above it.
    Forbidden(PathBuf),
    /// The directory is not below any of these allowed paths.
    NotAllowed(Vec<PathBuf>),
}

impl WorkingDirPolicy {
    /// Returns the innermost allowed directory that contains `path` or is `path`.
    pub fn check(&self, path: &Path) -> Result<&Path, DirRefusal> {
        let is_kin = |other: &&PathBuf| path.starts_with(other) || other.starts_with(path);
        if let Some(forbidden) = self.forbidden.iter().find(is_kin) {
            return Err(DirRefusal::Forbidden(forbidden.clone()));
        }
        let above = self.allowed.iter().filter(|allowed| path.starts_with(allowed));
        let innermost = above.max_by_key(|allowed| allowed.components().count());
        innermost.map(PathBuf::as_path).ok_or_else(|| DirRefusal::NotAllowed(self.allowed.clone()))
    }
}

#[cfg(test)]
mod tests;
