//! The user's directory of a session, between two cells.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codexec_sandbox::Mounter;
use codexec_types::FileChanges;

use super::{Run, SessionEnd};
use crate::ExecError;
use crate::frames::is_first_child;
use crate::freeze::{Freezer, FrozenProcesses};
use crate::process_tree::list_tree;
use crate::user_dir::UserDir;
use crate::zygote::run_blocking;

/// The guest's path of its directory, besides the real path.
pub(super) const WORK: &str = "/box/work";
/// The mount point for a directory at the top of the host's file tree: the guest's real path is a
/// link into it.
const TOP: &str = "/box/top";
/// The artifact folder of a cell for files that background processes wrote before the cell.
const BETWEEN: &str = "between-cells";
/// The artifact folder of the last cell for files that were written after it.
const AFTER: &str = "after-the-last-reply";

/// The inputs for replacing a session's upper layer before a cell.
struct Refresh {
    mounter: Arc<Mounter>,
    /// The tmpfs with the upper layers; `None` for a read-only directory.
    layers: Option<OwnedFd>,
    roots: Vec<i32>,
    keep: PathBuf,
}

/// The result of a refresh.
struct RefreshedLayer {
    /// The changes since the last reply, which are committed.
    written: FileChanges,
    /// The number of the next upper layer, its lower mount, and the guest's processes, which stay
    /// frozen until the layer is mounted. `None` if the guest keeps its layer.
    next: Option<(u32, OwnedFd, FrozenProcesses)>,
}

impl Run {
    /// Commits the files that background processes wrote since the last cell, and gives the guest a
    /// fresh upper layer, and so a current view of the directory. An overlay keeps hiding other
    /// people's edits to files that the guest has written, and new entries in directories that the
    /// guest has read.
    ///
    /// A guest with open files in the directory keeps its layer, and so a consistent view. The
    /// cell's changes report the committed files. `keep` is the cell's artifact folder.
    pub async fn refresh_directory(&mut self, keep: PathBuf) {
        if let Err(error) = self.try_refresh(keep).await {
            tracing::warn!(%error, "cannot refresh a session's directory");
            // The directory's two paths may show different layers now.
            if let Some(session) = &mut self.session {
                session.end.get_or_insert(SessionEnd::Closed);
            }
            self.handles.kill();
        }
    }

    async fn try_refresh(&mut self, keep: PathBuf) -> Result<(), ExecError> {
        let mounter = match &self.user_dir {
            Some(dir) if self.session_end().is_none() => dir.resources().mounter().await?,
            Some(_) | None => return Ok(()),
        };
        let layers = self.program.as_ref().and_then(|program| program.layers.as_ref());
        let layers = layers.map(OwnedFd::try_clone).transpose()?;
        let refresh = Refresh { mounter, layers, roots: self.roots.clone(), keep };
        let Some(mut dir) = self.user_dir.take() else { return Ok(()) };
        let (dir, refreshed) = run_blocking(move || {
            let refreshed = refresh.run(&mut dir);
            Ok((dir, refreshed))
        })
        .await?;
        self.user_dir = Some(dir);
        let RefreshedLayer { written, next } = refreshed?;
        if let Some(session) = &mut self.session {
            session.between.append(written);
        }
        match next {
            Some((layer, lower, _frozen)) => self.renew_overlay(layer, lower).await,
            None => Ok(()),
        }
    }

    /// Commits what the session wrote since its last reply, and returns the changes. Called when the
    /// session ends.
    pub(super) async fn commit_rest(&mut self) -> FileChanges {
        let layers = self.program.as_mut().and_then(|program| program.layers.take());
        let Some(session) = &mut self.session else { return FileChanges::default() };
        let mut rest = std::mem::take(&mut session.between);
        if let (Some(layers), Some(artifacts), Some(mut dir)) =
            (layers, session.artifacts.clone(), self.user_dir.take())
        {
            let keep = artifacts.join(AFTER);
            match run_blocking(move || Ok(dir.commit(&layers, &keep))).await {
                Ok(changes) => rest.append(changes),
                Err(error) => tracing::warn!(%error, "a session's last files were not written"),
            }
        }
        rest
    }
}

impl Refresh {
    /// Commits the old layer and prepares the next one. Blocks.
    ///
    /// THREAT[FIL-14]: no process writes to a layer after its commit, until it is replaced.
    fn run(&self, dir: &mut UserDir) -> io::Result<RefreshedLayer> {
        let keep_layer = |written| Ok(RefreshedLayer { written, next: None });
        let frozen = match Freezer::new(&self.roots).freeze() {
            Ok(frozen) => frozen,
            Err(error) => {
                tracing::debug!(%error, "a session keeps its layer: its processes cannot be frozen");
                return keep_layer(FileChanges::default());
            }
        };
        let committed = match &self.layers {
            Some(layers) => dir.commit_news(layers, &self.keep.join(BETWEEN)),
            None => Ok(FileChanges::default()),
        };
        let written = match committed {
            Ok(written) => written,
            // If the commit after the cell fails as well, that one reports it.
            Err(error) => {
                tracing::debug!(%error, "a session keeps its layer: the commit failed");
                return keep_layer(FileChanges::default());
            }
        };
        if has_open_files(&self.roots, dir.path()) || !frozen.is_still() {
            return keep_layer(written);
        }
        let (layer, lower) = dir.next_layer(self.layers.as_ref(), &self.mounter)?;
        Ok(RefreshedLayer { written, next: Some((layer, lower, frozen)) })
    }
}

/// True if the guest has files of the directory open or mapped, or has a background process in it. A
/// guest that fakes this harms only itself.
fn has_open_files(roots: &[i32], real_path: &Path) -> bool {
    let at_top = Path::new(TOP).join(real_path.strip_prefix("/").unwrap_or(real_path));
    let shown_at = [Path::new(WORK), real_path, &at_top];
    let is_below = |path: &Path| shown_at.iter().any(|shown| path.starts_with(shown));
    // The main process changes into its directory again at the start of each cell.
    let is_main = |pid: i32| match *roots {
        [_, main] => pid == main,
        _ => is_first_child(pid),
    };
    let init = roots.first();
    list_tree(roots).iter().filter(|pid| Some(*pid) != init).any(|pid| {
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut open = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mut mapped =
            maps.lines().filter_map(|line| line.find('/').map(|at| line.split_at(at).1));
        let mut cwd = fs::read_link(format!("/proc/{pid}/cwd")).into_iter();
        open.any(|path| is_below(&path))
            || mapped.any(|path| is_below(Path::new(path)))
            || (!is_main(*pid) && cwd.any(|path| is_below(&path)))
    })
}
