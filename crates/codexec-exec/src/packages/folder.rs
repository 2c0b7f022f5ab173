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
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use codexec_types::Language;

use super::metadata::{self, Dist};
use super::tree::{self, Bounds, Taken, TreeError};

/// Longer lists were not written by us.
const MAX_WANTED_BYTES: u64 = 256 << 10;

#[derive(Clone, Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

/// The lock of a packages folder, also respected by other servers.
pub(super) struct Lock(#[expect(dead_code, reason = "holding it is its use")] File);

impl Folder {
    pub(crate) fn at(root: &Path) -> Folder {
        Folder { root: root.to_owned() }
    }

    /// Creates the directory that guests see and returns its path, so that it can be mounted before
    /// anything is installed. Blocks.
    pub(crate) fn shown(&self) -> io::Result<PathBuf> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.root)?;
        let shown = self.root.join("shown");
        tree::make_dir(&shown)?;
        for language in [Language::Python, Language::Node] {
            tree::make_dir(&shown.join(place(language)))?;
        }
        Ok(shown)
    }

    /// Takes the lock. Returns `None` if another install holds it.
    pub(super) fn lock(&self) -> io::Result<Option<Lock>> {
        self.shown()?;
        let options = File::options().write(true).create(true).truncate(false).clone();
        let file = options.open(self.root.join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// True if nothing was ever installed in the folder.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |language| {
            let tree = self.root.join("shown").join(place(language));
            fs::read_dir(tree).is_ok_and(|mut entries| entries.next().is_none())
        };
        [Language::Python, Language::Node].into_iter().all(is_empty)
    }

    pub(super) fn installed(&self, language: Language) -> Vec<Dist> {
        metadata::installed(language, &self.root.join("shown").join(place(language)))
    }

    /// Returns the npm packages that were installed on request, each with the specifier to install
    /// it again.
    pub(super) fn wanted(&self) -> BTreeMap<String, String> {
        let mut text = String::new();
        let read = File::open(self.root.join("wanted.json"))
            .and_then(|file| file.take(MAX_WANTED_BYTES).read_to_string(&mut text));
        // Without this file npm starts from nothing; the installed packages are still listed by
        // their own metadata.
        read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Publishes the installer's files. With `is_whole` they replace all packages, otherwise only
    /// those of the same name. Blocks. The caller holds the lock.
    pub(super) fn put(
        &self,
        language: Language,
        from: &Path,
        put: &Put<'_>,
    ) -> Result<(), TreeError> {
        let next = self.root.join("next");
        remove(&next)?;
        let taken = self.build(&next, language, from, put);
        let done = taken.and_then(|_| {
            (put.judge)(&metadata::installed(language, &next))?;
            let shown = self.root.join("shown").join(place(language));
            if let Some(wanted) = put.wanted {
                self.keep_wanted(wanted)?;
            }
            Ok(codexec_sandbox::exchange(&next, &shown)?)
        });
        // Holds the old tree, or the one that failed.
        remove(&next)?;
        done
    }

    fn build(
        &self,
        next: &Path,
        language: Language,
        from: &Path,
        put: &Put<'_>,
    ) -> Result<Taken, TreeError> {
        let mut taken = tree::take_out(from, next, put.bounds)?;
        if put.is_whole {
            return Ok(taken);
        }
        let shown = self.root.join("shown").join(place(language));
        let new: BTreeSet<String> =
            metadata::installed(language, next).into_iter().map(|dist| dist.key).collect();
        let old = metadata::installed(language, &shown);
        let replaced = old.iter().filter(|dist| new.contains(&dist.key));
        let without: BTreeSet<PathBuf> =
            replaced.flat_map(|dist| metadata::files_of(&shown, dist)).collect();
        tree::join(&shown, next, &without, put.bounds, &mut taken)?;
        Ok(taken)
    }

    fn keep_wanted(&self, wanted: &BTreeMap<String, String>) -> io::Result<()> {
        let place = self.root.join("wanted.json.next");
        let mut file = File::create(&place)?;
        file.write_all(&serde_json::to_vec_pretty(wanted)?)?;
        fs::rename(place, self.root.join("wanted.json"))
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.display().fmt(f)
    }
}

/// How to publish a tree.
pub(super) struct Put<'a> {
    pub(super) bounds: Bounds,
    pub(super) is_whole: bool,
    pub(super) wanted: Option<&'a BTreeMap<String, String>>,
    /// The final check of the tree, before any guest sees it.
    pub(super) judge: &'a dyn Fn(&[Dist]) -> Result<(), TreeError>,
}

fn place(language: Language) -> &'static str {
    match language {
        Language::Node => "node_modules",
        Language::JavaScript | Language::TypeScript | Language::Python | Language::Bash => "python",
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
