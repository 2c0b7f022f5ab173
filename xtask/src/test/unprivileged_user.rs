//! The user without rights as whom root runs the integration tests, too.

use std::{
    fs, io,
    os::unix::{
        fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{self, Command},
};

use anyhow::{Context, Result};

use super::binaries::TestBinaries;
use crate::step;

/// The id of `nobody` on Debian; it has no rights on any system.
const UNPRIVILEGED_ID: u32 = 65_534;

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Returns true if every user can reach and read the path.
pub(crate) fn is_world_readable(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let mode = |path: &Path| fs::metadata(path).map_or(0, |found| found.mode());
    let is_way = |folder: &Path| mode(folder) & 0o001 != 0;
    mode(&path) & 0o004 != 0 && path.ancestors().skip(1).all(is_way)
}

/// An unprivileged user with copies of the programs, because only root may be able to read the
/// target folder.
pub(super) struct UnprivilegedUser {
    /// Removes the copies on drop.
    _stage: Stage,
    integration: PathBuf,
    codexec: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
}

impl UnprivilegedUser {
    pub(super) fn prepare(built: &TestBinaries) -> Result<UnprivilegedUser> {
        let stage = Stage::new().context("cannot create a folder for the unprivileged user")?;
        Ok(UnprivilegedUser {
            integration: stage.copy(&built.integration.path, "it")?,
            codexec: stage.copy(&built.codexec, "codexec")?,
            home: stage.folder("home")?,
            tmp: stage.folder("tmp")?,
            _stage: stage,
        })
    }

    /// Returns a command that starts the integration tests as this user.
    pub(super) fn command(&self) -> Command {
        let home = &self.home;
        let mut tests = step::command(&self.integration);
        // Changing the uid also drops root's supplementary groups.
        tests.uid(UNPRIVILEGED_ID).gid(UNPRIVILEGED_ID).current_dir(home);
        tests.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8");
        tests.env("HOME", home).env("CODEXEC_HOME", home.join(".codexec"));
        tests.env("TMPDIR", &self.tmp).env("CODEXEC_BIN", &self.codexec);
        tests.env("CODEXEC_PLAIN_USER", "1");
        tests
    }
}

/// A temporary folder, removed on drop.
struct Stage(PathBuf);

#[expect(clippy::disallowed_methods, reason = "these folders belong to another user")]
impl Stage {
    fn new() -> io::Result<Stage> {
        let path = std::env::temp_dir().join(format!("codexec-plain-{}", process::id()));
        // Fails if the folder exists: another user may have planted files in it.
        fs::DirBuilder::new().mode(0o755).create(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Stage(path))
    }

    fn copy(&self, from: &Path, name: &str) -> Result<PathBuf> {
        let to = self.0.join(name);
        fs::copy(from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
        Ok(to)
    }

    fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        chown(&path, Some(UNPRIVILEGED_ID), Some(UNPRIVILEGED_ID))?;
        Ok(path)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
