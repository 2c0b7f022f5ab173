use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};

use crate::Files;

/// A path with more links than this leads nowhere, as for the kernel.
const MAX_LINKS: usize = 40;

/// Paths that guests may write, so that nothing of ours may be started from there unasked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestPaths {
    /// The directories that guests may work in and write.
    pub files: Files,
    /// Paths below these are started all the same: the user's word in the settings.
    pub run_from: Vec<PathBuf>,
}

impl GuestPaths {
    /// Returns the directory through which guests can change what stands at `path`, or where a
    /// link on the way to it leads. `path` must be absolute; `read_link` gives the target of a link
    /// and nothing for anything else.
    pub fn directory_of(
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
            let found = self.writable_by(&next);
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
        self.writable_by(&real)
    }

    /// The same for a path without links.
    fn writable_by(&self, real: &Path) -> Option<&Path> {
        if self.run_from.iter().any(|trusted| real.starts_with(trusted)) {
            return None;
        }
        // A guest may ask for any directory below an allowed one that is not forbidden.
        let mut directories = real.ancestors();
        let is_open = directories.any(|directory| self.files.judge(directory).is_ok());
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
