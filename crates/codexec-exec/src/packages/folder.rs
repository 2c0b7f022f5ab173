//! A packages folder, of one session or of all guests.
//!
//! ```text
//! <root>/shown/python         what guests see. `shown` is mounted into their rootfs,
//! <root>/shown/node_modules   so a tree that replaces another is visible at once
//! <root>/next                 a tree while it is built
//! <root>/wanted.json          the packages that npm was asked for
//! <root>/lock                 held during an install
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use codexec_files::{FileLock, private_files};
use codexec_types::{Language, PackageName};

use super::metadata::{self, PackageInfo};
use super::tree::{self, CopiedTree, TreeError, TreeLimits};

/// Longer lists were not written by us.
const MAX_WANTED_BYTES: u64 = 256 << 10;

#[derive(Clone, Debug)]
pub(crate) struct PackagesFolder {
    root: PathBuf,
}

impl PackagesFolder {
    pub(crate) fn at(root: &Path) -> PackagesFolder {
        PackagesFolder { root: root.to_owned() }
    }

    /// Creates the directory that guests see and returns its path, so that it can be mounted before
    /// anything is installed. Blocks.
    pub(crate) fn make_shown_dir(&self) -> io::Result<PathBuf> {
        private_files::make_folder(&self.root)?;
        let shown = self.root.join("shown");
        tree::make_dir(&shown)?;
        for language in [Language::Python, Language::Node] {
            tree::make_dir(&shown.join(tree_name(language)))?;
        }
        Ok(shown)
    }

    /// Takes the lock, which other servers respect, too. Returns `None` if another install holds
    /// it.
    pub(super) fn try_lock(&self) -> io::Result<Option<FileLock>> {
        self.make_shown_dir()?;
        FileLock::try_acquire(&self.root.join("lock"))
    }

    /// True if nothing was ever installed in the folder.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |language| {
            let tree = self.root.join("shown").join(tree_name(language));
            fs::read_dir(tree).is_ok_and(|mut entries| entries.next().is_none())
        };
        [Language::Python, Language::Node].into_iter().all(is_empty)
    }

    pub(super) fn list_installed(&self, language: Language) -> Vec<PackageInfo> {
        metadata::list_installed(language, &self.root.join("shown").join(tree_name(language)))
    }

    /// Returns the npm packages that were installed on request, each with the specifier to install
    /// it again.
    pub(super) fn read_requested(&self) -> BTreeMap<String, String> {
        let mut text = String::new();
        let read = File::open(self.root.join("wanted.json"))
            .and_then(|file| file.take(MAX_WANTED_BYTES).read_to_string(&mut text));
        // Without this file npm starts from nothing; the installed packages are still listed by
        // their own metadata.
        read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Publishes the installer's files. With `is_whole` they replace all packages, otherwise only
    /// those of the same name. Blocks. The caller holds the lock.
    pub(super) fn publish(
        &self,
        language: Language,
        from: &Path,
        plan: &PublishPlan<'_>,
    ) -> Result<(), TreeError> {
        let next = self.root.join("next");
        remove_if_present(&next)?;
        let copied = self.build(&next, language, from, plan);
        let done = copied.and_then(|_| {
            (plan.judge)(&metadata::list_installed(language, &next))?;
            let shown = self.root.join("shown").join(tree_name(language));
            if let Some(wanted) = plan.wanted {
                self.write_requested(wanted)?;
            }
            Ok(codexec_sandbox::swap_directories(&next, &shown)?)
        });
        // Holds the old tree, or the one that failed.
        remove_if_present(&next)?;
        done
    }

    /// Removes an installed package, but not its dependencies. Returns its description, or `None`
    /// if there is no such package. Blocks. The caller holds the lock.
    pub(super) fn remove(
        &self,
        package: &PackageName,
        bounds: TreeLimits,
    ) -> Result<Option<PackageInfo>, TreeError> {
        let language = package.language();
        let shown = self.root.join("shown").join(tree_name(language));
        let installed = metadata::list_installed(language, &shown);
        let Some(dist) = installed.into_iter().find(|dist| dist.key == package.key()) else {
            return Ok(None);
        };
        let without: BTreeSet<PathBuf> = metadata::list_files(&shown, &dist).into_iter().collect();
        let next = self.root.join("next");
        remove_if_present(&next)?;
        tree::make_dir(&next)?;
        let merged = tree::merge(&shown, &next, &without, bounds, &mut CopiedTree::default());
        let done = merged.and_then(|()| {
            tree::remove_empty_dirs(&next)?;
            if language == Language::Node {
                let mut wanted = self.read_requested();
                wanted.remove(&package.key());
                self.write_requested(&wanted)?;
            }
            Ok(codexec_sandbox::swap_directories(&next, &shown)?)
        });
        // Holds the old tree, or the one that failed.
        remove_if_present(&next)?;
        done.map(|()| Some(dist))
    }

    fn build(
        &self,
        next: &Path,
        language: Language,
        from: &Path,
        plan: &PublishPlan<'_>,
    ) -> Result<CopiedTree, TreeError> {
        let mut copied = tree::copy_out(from, next, plan.bounds)?;
        if plan.is_whole {
            return Ok(copied);
        }
        let shown = self.root.join("shown").join(tree_name(language));
        let new: BTreeSet<String> =
            metadata::list_installed(language, next).into_iter().map(|dist| dist.key).collect();
        let old = metadata::list_installed(language, &shown);
        let replaced = old.iter().filter(|dist| new.contains(&dist.key));
        let without: BTreeSet<PathBuf> =
            replaced.flat_map(|dist| metadata::list_files(&shown, dist)).collect();
        tree::merge(&shown, next, &without, plan.bounds, &mut copied)?;
        Ok(copied)
    }

    fn write_requested(&self, wanted: &BTreeMap<String, String>) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(wanted)?;
        private_files::replace(&self.root.join("wanted.json"), &text).map(drop)
    }
}

impl fmt::Display for PackagesFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.display().fmt(f)
    }
}

/// Options for publishing a tree.
pub(super) struct PublishPlan<'a> {
    pub(super) bounds: TreeLimits,
    pub(super) is_whole: bool,
    pub(super) wanted: Option<&'a BTreeMap<String, String>>,
    /// The final check of the tree, before any guest sees it.
    pub(super) judge: &'a dyn Fn(&[PackageInfo]) -> Result<(), TreeError>,
}

fn tree_name(language: Language) -> &'static str {
    match language {
        Language::Node => "node_modules",
        Language::JavaScript | Language::TypeScript | Language::Python | Language::Bash => "python",
    }
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
