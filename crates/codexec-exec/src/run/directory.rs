//! The directory of a session between two cells.

use std::fs;
use std::os::fd::AsFd;

use super::{Over, Run};
use crate::ExecError;
use crate::watch::tree;
use crate::zygote::blocking;

/// Where guests see their directory, beside its real path.
const WORK: &str = "/box/work";

impl Run {
    /// Before a cell: if somebody else changed what the guest's layer covers, or the layer is
    /// half full, the guest gets a fresh one and sees the directory as it is now.
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
        let layers = self.home.as_ref().and_then(|home| home.layers.as_ref());
        let Some(layers) = layers.and_then(|layers| layers.try_clone().ok()) else {
            return Ok(());
        };
        let Some(dir) = self.user_dir.take() else { return Ok(()) };
        let (dir, layers, is_stale) = blocking(move || {
            let is_stale = dir.is_stale() || is_half_full(&layers);
            Ok((dir, layers, is_stale))
        })
        .await?;
        let may_renew = is_stale && !self.has_open_files(dir.path());
        if !may_renew {
            self.user_dir = Some(dir);
            return Ok(());
        }
        let mounter = dir.machine().mounter().await?;
        let (mut dir, layer, lower) = blocking(move || {
            let mut dir = dir;
            let (layer, lower) = dir.next_layer(&layers, &mounter)?;
            Ok((dir, layer, lower))
        })
        .await?;
        self.renew_overlay(layer, lower).await?;
        self.user_dir =
            Some(blocking(move || dir.begin_layer().map(|()| dir).map_err(Into::into)).await?);
        Ok(())
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
    fn has_open_files(&self, real_path: &std::path::Path) -> bool {
        let processes = tree(&self.roots);
        let is_below =
            |path: &std::path::Path| path.starts_with(WORK) || path.starts_with(real_path);
        let main = self.roots.last().copied();
        processes.iter().filter(|pid| self.roots.first() != Some(pid)).any(|pid| {
            let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let mut open = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let mut mapped = maps.lines().filter_map(|line| Some(line.split_once('/')?.1));
            let cwd = fs::read_link(format!("/proc/{pid}/cwd"));
            // The main process goes to its folder again at the beginning of each cell.
            let is_inside = Some(*pid) != main && cwd.is_ok_and(|cwd| is_below(&cwd));
            is_inside
                || open.any(|path| is_below(&path))
                || mapped.any(|path| is_below(std::path::Path::new(&format!("/{path}"))))
        })
    }
}

fn is_half_full(layers: &impl AsFd) -> bool {
    rustix::fs::fstatvfs(layers)
        .is_ok_and(|about| about.f_bavail < about.f_blocks / 2 || about.f_ffree < about.f_files / 2)
}
