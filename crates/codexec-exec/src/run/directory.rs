//! The user's directory of a session, between two cells.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::{Run, SessionEnd};
use crate::ExecError;
use crate::frames::is_first_child;
use crate::process_tree::list_tree;
use crate::zygote::run_blocking;

/// The guest's path of its directory, besides the real path.
const WORK: &str = "/box/work";

impl Run {
    /// Gives the guest a fresh upper layer before a cell, and so a current view of the directory.
    /// An overlay keeps hiding other people's edits to files that the guest has written, and new
    /// entries in directories that the guest has read.
    ///
    /// A guest with open files in the directory keeps its layer, and so a consistent view.
    pub async fn refresh_directory(&mut self) {
        if let Err(error) = self.try_refresh().await {
            tracing::warn!(%error, "cannot refresh a session's directory");
            // The directory's two paths may show different layers now.
            if let Some(session) = &mut self.session {
                session.end.get_or_insert(SessionEnd::Closed);
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
        let layers = self.program.as_ref().and_then(|program| program.layers.as_ref());
        let layers = layers.map(OwnedFd::try_clone).transpose()?;
        let Some(mut dir) = self.user_dir.take() else { return Ok(()) };
        let mounter = dir.resources().mounter().await?;
        let (mut dir, layer, lower) = run_blocking(move || {
            let (layer, lower) = dir.next_layer(layers.as_ref(), &mounter)?;
            Ok((dir, layer, lower))
        })
        .await?;
        self.renew_overlay(layer, lower).await?;
        let begun = run_blocking(move || Ok(dir.begin_layer().map(|()| dir)?)).await?;
        self.user_dir = Some(begun);
        Ok(())
    }

    /// Commits what the session wrote since its last reply. Called when the session ends.
    pub(super) async fn commit_rest(&mut self) {
        let layers = self.program.as_mut().and_then(|program| program.layers.take());
        let artifacts = self.session.as_ref().and_then(|session| session.artifacts.clone());
        let (Some(layers), Some(artifacts), Some(mut dir)) =
            (layers, artifacts, self.user_dir.take())
        else {
            return;
        };
        let keep = artifacts.join("after-the-last-reply");
        let committed = run_blocking(move || Ok(dir.commit(&layers, &keep))).await;
        match committed {
            Ok(changes) if !changes.conflicts.is_empty() => {
                let conflicts = &changes.conflicts;
                tracing::warn!(?conflicts, "some of a session's last files were not committed");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "cannot commit a session's last files"),
        }
    }

    /// True if the guest has files of the directory open or mapped, or has a background process in
    /// it. A guest that fakes this harms only itself.
    fn has_open_files(&self, real_path: &Path) -> bool {
        let is_below = |path: &Path| path.starts_with(WORK) || path.starts_with(real_path);
        // The main process changes into its directory again at the start of each cell.
        let is_main = |pid: i32| match *self.roots {
            [_, main] => pid == main,
            _ => is_first_child(pid),
        };
        let init = self.roots.first();
        list_tree(&self.roots).iter().filter(|pid| Some(*pid) != init).any(|pid| {
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
