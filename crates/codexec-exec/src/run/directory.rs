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

/// Where guests list_files their directory, beside its real path.
pub(super) const WORK: &str = "/box/work";
/// Where a directory at the top of the host's file tree is: its real path is a link to there.
const TOP: &str = "/box/top";
/// Where, below the artifacts of a cell, those are that were written before it.
const BETWEEN: &str = "between-cells";
/// Where, below the artifacts of the last cell, those are that were written after it.
const AFTER: &str = "after-the-last-reply";

/// What a session's directory needs before a cell.
struct Refresh {
    mounter: Arc<Mounter>,
    /// Where the upper layers are; `None` for a directory that is read-only.
    layers: Option<OwnedFd>,
    roots: Vec<i32>,
    keep: PathBuf,
}

/// What became of the layer that the guest has.
struct RefreshedLayer {
    /// What was written to it since the last reply.
    written: FileChanges,
    /// The next layer and its lower one, and the guest's processes, which stand still until they
    /// list_files it; `None` if the guest keeps its layer.
    next: Option<(u32, OwnedFd, FrozenProcesses)>,
}

impl Run {
    /// Before a cell: commits what processes that earlier cells left running have written, and
    /// gives the guest a fresh layer, and with it the directory as it is now. An overlay goes on
    /// hiding what somebody else changes where the guest has written, and what somebody else adds
    /// where the guest has looked.
    ///
    /// A guest that has files of its directory open keeps its layer, and with it a view that fits
    /// together. What was committed is told with the cell's changes; `keep` is where the cell's
    /// artifacts are.
    pub async fn refresh_directory(&mut self, keep: PathBuf) {
        if let Err(error) = self.try_refresh(keep).await {
            tracing::warn!(%error, "a session's directory could not be renewed");
            // The guest's two views of its directory may differ now.
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

    /// At the end of a session: writes what it left since its last reply into the directory, and
    /// returns that.
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
    /// THREAT[FIL-14]: no process writes to a layer from when it is committed until it is replaced.
    /// Blocks.
    fn run(&self, dir: &mut UserDir) -> io::Result<RefreshedLayer> {
        let keep_layer = |written| Ok(RefreshedLayer { written, next: None });
        let frozen = match Freezer::new(&self.roots).freeze() {
            Ok(frozen) => frozen,
            Err(error) => {
                tracing::debug!(%error, "a session keeps its layer, as it does not stand still");
                return keep_layer(FileChanges::default());
            }
        };
        let committed = match &self.layers {
            Some(layers) => dir.commit_news(layers, &self.keep.join(BETWEEN)),
            None => Ok(FileChanges::default()),
        };
        let written = match committed {
            Ok(written) => written,
            // The commit after the cell tells it, if that fails as well.
            Err(error) => {
                tracing::debug!(%error, "a session keeps its layer, as it was not committed");
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

/// True if a process that the guest left running, or a file that it has open or mapped, holds on to
/// its directory. The guest could lie here, and would confuse nobody but itself.
fn has_open_files(roots: &[i32], real_path: &Path) -> bool {
    let at_top = Path::new(TOP).join(real_path.strip_prefix("/").unwrap_or(real_path));
    let shown_at = [Path::new(WORK), real_path, &at_top];
    let is_below = |path: &Path| shown_at.iter().any(|shown| path.starts_with(shown));
    // The main process goes to its folder again at the beginning of each cell.
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
