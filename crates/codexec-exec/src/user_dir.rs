//! A directory of the user's that a guest works in: mounted into its worker, and looked at
//! before and after.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codexec_sandbox::{Overlay, Wanted};
use codexec_types::{Changes, WorkingDir};

use crate::ExecError;
use crate::changes::{Files, difference, see};
use crate::pool::Machine;
use crate::zygote::blocking;

/// THREAT[FIL-2]: what people's tools run or obey by themselves. In a directory that a guest may
/// write, these stay as they are, and new ones are taken away.
///
/// THREAT[CFG-5]: every file of a project that we read servers from is among them.
const PROTECTED: &[&str] = &[
    ".bash_login",
    ".bash_profile",
    ".bashrc",
    ".claude",
    ".code-executor.json",
    ".codex",
    ".cursor",
    ".cursorrules",
    ".devcontainer",
    ".envrc",
    ".gemini",
    ".git",
    ".gitconfig",
    ".github",
    ".gitmodules",
    ".hg",
    ".husky",
    ".idea",
    ".mcp.json",
    ".npmrc",
    ".pre-commit-config.yaml",
    ".profile",
    ".vscode",
    ".windsurf",
    ".windsurfrules",
    ".yarnrc",
    ".yarnrc.yml",
    ".zed",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    "opencode.json",
    "opencode.jsonc",
];
const MAX_BYTES: u64 = 1 << 30;
const MAX_FILES: u64 = 1 << 20;

pub(crate) struct UserDir {
    path: PathBuf,
    is_writable: bool,
    before: Files,
}

impl UserDir {
    /// What it is like now, and the mounts for the worker.
    pub(crate) async fn open(
        wanted: &WorkingDir,
        machine: &Arc<Machine>,
    ) -> Result<(UserDir, Overlay, OwnedFd), ExecError> {
        let mounter = machine.mounter().await?;
        let wanted = wanted.clone();
        blocking(move || {
            let found = &wanted.found;
            let before = see(&found.path);
            let owner = codexec_sandbox::is_root().then_some((found.uid, found.gid));
            let lower = mounter.mount(&Wanted {
                path: found.path.clone(),
                device: found.device,
                inode: found.inode,
                owner,
            });
            let lower = lower.map_err(|error| {
                let path = found.path.display();
                ExecError::WorkingDir(format!("{path} cannot be shown to code: {error}"))
            })?;
            let overlay = Overlay {
                real_path: found.path.clone(),
                is_writable: wanted.is_writable,
                max_bytes: MAX_BYTES,
                max_files: MAX_FILES,
            };
            let dir = UserDir { path: found.path.clone(), is_writable: wanted.is_writable, before };
            Ok((dir, overlay, lower))
        })
        .await
    }

    /// What has changed, after what must not be there was taken away again, and the directory
    /// as it is now. Blocks.
    pub(crate) fn changes(self) -> (Changes, UserDir) {
        if !self.is_writable {
            return (Changes::default(), self);
        }
        let mut after = see(&self.path);
        let mut refused = Vec::new();
        for path in protected(after.keys()) {
            if !self.before.contains_key(&path) {
                take_away(&self.path.join(&path));
                refused.push(path.display().to_string());
                after.retain(|other, _| !other.starts_with(&path));
            }
        }
        let changes = Changes { refused, ..difference(&self.before, &after) };
        (changes, UserDir { before: after, ..self })
    }
}

/// The outermost of the protected ones among these.
fn protected<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for path in paths {
        let is_protected = path.file_name().is_some_and(|name| {
            PROTECTED.iter().any(|protected| name.eq_ignore_ascii_case(protected))
        });
        if is_protected && !found.iter().any(|outer| path.starts_with(outer)) {
            found.push(path.clone());
        }
    }
    found
}

fn take_away(path: &Path) {
    let is_dir = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let gone = if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    if let Err(error) = gone {
        tracing::warn!(path = %path.display(), %error, "a guest's file could not be taken away");
    }
}
