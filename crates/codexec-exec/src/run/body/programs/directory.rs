//! The user's directory of a session, between two cells.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codexec_sandbox::Mounter;
use codexec_types::FileChanges;

use super::ProgramsBody;
use crate::frames::is_first_child;
use crate::freeze::{Freezer, FrozenProcesses};
use crate::process_tree::list_tree;
use crate::user_dir::UserDir;
use crate::zygote::run_blocking;
use crate::{ExecError, slot};

/// The guest's path of its directory, besides the real path.
pub(in crate::run) const WORK: &str = "/box/work";
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
    next: NextLayer,
}

enum NextLayer {
    /// The number of the next upper layer, its lower mount, and the guest's processes, which stay
    /// frozen until the layer is mounted.
    Fresh(u32, OwnedFd, FrozenProcesses),
    /// The guest keeps its layer.
    Same,
    /// The guest has left no room for the folders of the next layer.
    NoRoom,
}

impl ProgramsBody {
    /// Commits the files that background processes wrote since the last cell, and gives the guest a
    /// fresh upper layer, and so a current view of the directory. An overlay keeps hiding other
    /// people's edits to files that the guest has written, and new entries in directories that the
    /// guest has read.
    ///
    /// A guest with open files in the directory keeps its layer, and so a consistent view.
    pub(in crate::run::body) async fn refresh_directory(
        &mut self,
        keep: PathBuf,
        between: &mut FileChanges,
    ) -> Result<(), ExecError> {
        let mut next = self.prepare_layer(keep.clone(), between).await?;
        if matches!(next, NextLayer::NoRoom) {
            match &mut self.worker.busy {
                Some(busy) => busy.make_room(&self.program).await?,
                None => return Err(slot::protocol_error()),
            }
            next = self.prepare_layer(keep, between).await?;
        }
        match next {
            NextLayer::Fresh(layer, lower, _frozen) => self.renew_overlay(layer, lower).await,
            NextLayer::Same | NextLayer::NoRoom => Ok(()),
        }
    }

    /// Commits the old layer, adds what was written to `between`, and prepares the next layer.
    async fn prepare_layer(
        &mut self,
        keep: PathBuf,
        between: &mut FileChanges,
    ) -> Result<NextLayer, ExecError> {
        let mounter = match &self.user_dir {
            Some(dir) => dir.resources().mounter().await?,
            None => return Ok(NextLayer::Same),
        };
        let layers = self.program.layers.as_ref().map(OwnedFd::try_clone).transpose()?;
        let refresh = Refresh { mounter, layers, roots: self.worker.roots.clone(), keep };
        let Some(mut dir) = self.user_dir.take() else { return Ok(NextLayer::Same) };
        let (dir, refreshed) = run_blocking(move || {
            let refreshed = refresh.run(&mut dir);
            Ok((dir, refreshed))
        })
        .await?;
        self.user_dir = Some(dir);
        let RefreshedLayer { written, next } = refreshed?;
        between.append(written);
        Ok(next)
    }

    /// Gives the guest's directory the upper layer `upper-<generation>`, which is created if
    /// missing. `lower` is a new mount of the same directory.
    pub(in crate::run::body) async fn renew_overlay(
        &mut self,
        generation: u32,
        lower: OwnedFd,
    ) -> Result<(), ExecError> {
        match &mut self.worker.busy {
            Some(busy) => busy.renew_overlay(&self.program, generation, lower).await,
            None => Err(slot::protocol_error()),
        }
    }

    pub(in crate::run::body) async fn commit_rest(&mut self, artifacts: &Path) -> FileChanges {
        let (Some(layers), Some(mut dir)) = (self.program.layers.take(), self.user_dir.take())
        else {
            return FileChanges::default();
        };
        let keep = artifacts.join(AFTER);
        match run_blocking(move || Ok(dir.commit(&layers, &keep))).await {
            Ok(changes) => changes,
            Err(error) => {
                tracing::warn!(%error, "a session's last files were not written");
                FileChanges::default()
            }
        }
    }
}

impl Refresh {
    /// Commits the old layer and prepares the next one. Blocks.
    ///
    /// THREAT[FIL-14]: no process writes to a layer after its commit, until it is replaced.
    fn run(&self, dir: &mut UserDir) -> io::Result<RefreshedLayer> {
        let keep_layer = |written| Ok(RefreshedLayer { written, next: NextLayer::Same });
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
        let next = match dir.next_layer(self.layers.as_ref(), &self.mounter)? {
            Some((layer, lower)) => NextLayer::Fresh(layer, lower, frozen),
            None => NextLayer::NoRoom,
        };
        Ok(RefreshedLayer { written, next })
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
