//! The integration tests once more, as a user without any privilege.

use std::{
    fs, io,
    os::unix::{
        fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process,
};

use anyhow::{Context, Result};

use crate::step;

/// `nobody` on Debian, and a number without rights everywhere.
const PLAIN_ID: u32 = 65_534;

/// The programs under test.
pub(crate) struct Built {
    /// The integration tests.
    pub(crate) it: PathBuf,
    pub(crate) codexec: PathBuf,
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Whether every user can get there and read it.
pub(crate) fn may_read(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let mode = |path: &Path| fs::metadata(path).map_or(0, |found| found.mode());
    let is_way = |folder: &Path| mode(folder) & 0o001 != 0;
    mode(&path) & 0o004 != 0 && path.ancestors().skip(1).all(is_way)
}

/// Runs them from copies, because the target folder may lie where only root can go.
pub(crate) fn test(root: &Path, built: &Built, world: &Path, filter: Option<&str>) -> Result<()> {
    let stage = Stage::new().context("the folder for the plain user cannot be made")?;
    let it = stage.copy(&built.it, "it")?;
    let codexec = stage.copy(&built.codexec, "codexec")?;
    let home = stage.folder("home")?;
    let tmp = stage.folder("tmp")?;
    let mut tests = step::command(it);
    // Dropping root's id also drops root's groups.
    tests.uid(PLAIN_ID).gid(PLAIN_ID).current_dir(&home).args(filter);
    tests.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8");
    tests.env("HOME", &home).env("TMPDIR", tmp).env("CODEXEC_HOME", home.join(".codexec"));
    tests.env("CODEXEC_BIN", codexec).env("CODEXEC_WORLD", world);
    tests.env("CODEXEC_PLAIN_USER", "1").env("CODEXEC_REQUIRE_ALL", "1");
    // Snapshots are compared there, never written, and without asking cargo where they are.
    tests.env("INSTA_UPDATE", "no").env("INSTA_WORKSPACE_ROOT", root).env("RUST_BACKTRACE", "1");
    step::run(&mut tests)
}

/// A folder that is removed at the end.
struct Stage(PathBuf);

impl Stage {
    fn new() -> io::Result<Stage> {
        let path = std::env::temp_dir().join(format!("codexec-plain-{}", process::id()));
        // It must not be there yet: whoever made it could have put things into it.
        fs::DirBuilder::new().mode(0o755).create(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Stage(path))
    }

    fn copy(&self, from: &Path, name: &str) -> Result<PathBuf> {
        let to = self.0.join(name);
        fs::copy(from, &to).with_context(|| format!("{} cannot be copied", from.display()))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
        Ok(to)
    }

    fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        chown(&path, Some(PLAIN_ID), Some(PLAIN_ID))?;
        Ok(path)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
