use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};

use crate::WorkingDirPolicy;

/// Like the kernel, gives up on paths with more symlinks than this.
const MAX_LINKS: usize = 40;

/// Paths that guests can write. Nothing below them may be executed by the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestPaths {
    /// The directories that guests may use as working directory.
    pub files: WorkingDirPolicy,
    /// Exceptions from the settings: the host may execute files below these paths.
    pub run_from: Vec<PathBuf>,
}

impl GuestPaths {
    /// Returns the guest-writable directory that `path`, or a symlink on the way to it, lies in.
    /// `path` must be absolute; `read_link` returns the target of a symlink, or `None` for anything
    /// else.
    pub fn find_writable_dir(
        &self,
        path: &Path,
        read_link: &dyn Fn(&Path) -> Option<PathBuf>,
    ) -> Option<&Path> {
        if !self.files.is_writable || self.files.allowed.is_empty() {
            return None;
        }
        let mut left: VecDeque<PathBuf> = parts(path).collect();
        let mut real = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = left.pop_front() {
            if part.as_os_str() == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&part);
            let Some(target) = read_link(&next) else {
                real = next;
                continue;
            };
            links += 1;
            let found = self.writable_dir_of(&next);
            if found.is_some() || links > MAX_LINKS {
                return found;
            }
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                left.push_front(part);
            }
        }
        self.writable_dir_of(&real)
    }

    /// Does the same for a path without symlinks.
    fn writable_dir_of(&self, real: &Path) -> Option<&Path> {
        if self.run_from.iter().any(|trusted| real.starts_with(trusted)) {
            return None;
        }
        // A guest may request any directory below an allowed one, unless it is forbidden.
        let mut directories = real.ancestors();
        let is_open = directories.any(|directory| self.files.check(directory).is_ok());
        let root = self.files.allowed.iter().find(|root| real.starts_with(root));
        root.filter(|_| is_open).map(PathBuf::as_path)
    }
}

fn parts(path: &Path) -> impl Iterator<Item = PathBuf> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}

#[cfg(test)]
mod tests;
