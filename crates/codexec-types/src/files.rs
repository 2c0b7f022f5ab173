use std::path::{Path, PathBuf};

/// Which of the user's directories an execution may work in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// These and what is below them; real paths, without links.
    pub allowed: Vec<PathBuf>,
    /// Neither these, nor what is below or above them. Stronger than `allowed`.
    pub forbidden: Vec<PathBuf>,
    pub is_writable: bool,
}

/// A directory as it was found: what is mounted later has to be this and no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDir {
    /// The real path, without links.
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    pub uid: u32,
    pub gid: u32,
}

/// A directory that an execution works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingDir {
    pub found: FoundDir,
    pub is_writable: bool,
    /// The directory of the settings that this one is, or is below of.
    pub allowed: PathBuf,
}

/// Why a directory may not be worked in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirRefusal {
    /// It is this one, or below it, or above it.
    Forbidden(PathBuf),
    /// These are allowed.
    NotAllowed(Vec<PathBuf>),
}

impl Files {
    /// Returns the innermost allowed directory that `path` is, or is below of.
    pub fn judge(&self, path: &Path) -> Result<&Path, DirRefusal> {
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
