//! The directory of a session between two cells.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::{Over, Run};
use crate::ExecError;
use crate::watch::tree;
use crate::wire::is_first_child;
use crate::zygote::blocking;

/// Where guests see their directory, beside its real path.
pub(super) const WORK: &str = "/box/work";
/// Where a directory at the top of the host's file tree is: its real path is a link to there.
const TOP: &str = "/box/top";

impl Run {
    /// Before a cell: gives the guest a fresh layer, and with it the directory as it is now. An
    /// overlay goes on hiding what somebody else changes where the guest has written, and what
    /// somebody else adds where the guest has looked.
    ///
    /// A guest that has files of its directory open keeps its layer, and with it a view that fits
    /// together.
    pub async fn refresh_directory(&mut self) {
        if let Err(error) = self.try_refresh().await {
            tracing::warn!(%error, "a session's directory could not be renewed");
            // The guest's two views of its directory may differ now.
            if let Some(kept) = &mut self.kept {
                kept.over.get_or_insert(Over::Closed);
            }
            self.handles.kill();
        }
    }

    async fn try_refresh(&mut self) -> Result<(), ExecError> {
        let Some(path) = self.user_dir.as_ref().map(|dir| dir.path().to_owned()) else {
            return Ok(());
        };
        if self.has_open_files(&path) {
            return Ok(());
        }
        let layers = self.home.as_ref().and_then(|home| home.layers.as_ref());
        let layers = layers.map(OwnedFd::try_clone).transpose()?;
        let Some(mut dir) = self.user_dir.take() else { return Ok(()) };
        let mounter = dir.machine().mounter().await?;
        let (dir, layer, lower) = blocking(move || {
            let (layer, lower) = dir.next_layer(layers.as_ref(), &mounter)?;
            Ok((dir, layer, lower))
        })
        .await?;
        self.user_dir = Some(dir);
        self.renew_overlay(layer, lower).await
    }

    /// At the end of a session: writes what it left since its last reply into the directory.
    pub(super) async fn commit_rest(&mut self) {
        let layers = self.home.as_mut().and_then(|home| home.layers.take());
        let artifacts = self.kept.as_ref().and_then(|kept| kept.artifacts.clone());
        let (Some(layers), Some(artifacts), Some(mut dir)) =
            (layers, artifacts, self.user_dir.take())
        else {
            return;
        };
        let keep = artifacts.join("after-the-last-reply");
        let committed = blocking(move || Ok(dir.commit(&layers, &keep))).await;
        match committed {
            Ok(changes) if !changes.conflicts.is_empty() => {
                tracing::warn!(conflicts = ?changes.conflicts, "a session's last files");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "a session's last files were not written"),
        }
    }

    /// True if a process that the guest left running, or a file that it has open or mapped, holds
    /// on to its directory. The guest could lie here, and would confuse nobody but itself.
    fn has_open_files(&self, real_path: &Path) -> bool {
        let at_top = Path::new(TOP).join(real_path.strip_prefix("/").unwrap_or(real_path));
        let shown_at = [Path::new(WORK), real_path, &at_top];
        let is_below = |path: &Path| shown_at.iter().any(|shown| path.starts_with(shown));
        // The main process goes to its folder again at the beginning of each cell.
        let is_main = |pid: i32| match *self.roots {
            [_, main] => pid == main,
            _ => is_first_child(pid),
        };
        let init = self.roots.first();
        tree(&self.roots).iter().filter(|pid| Some(*pid) != init).any(|pid| {
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
}
