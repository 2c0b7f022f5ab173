//! The files that programs leave.

use std::path::PathBuf;

use codexec_types::FileChanges;

use super::ProgramsBody;
use crate::files;
use crate::user_dir::report_failed_commit;
use crate::zygote::run_blocking;

impl ProgramsBody {
    pub(in crate::run::body) async fn collect_changes(&mut self, keep: PathBuf) -> FileChanges {
        // Most guests leave no files, and waking a thread takes as long as running a short cell.
        let is_unchanged = match (&self.user_dir, &self.program.layers) {
            (Some(dir), Some(layers)) => dir.is_unchanged(layers),
            (Some(_), None) => true,
            (None, _) => self.files.is_empty() && files::is_empty(&self.program.workspace),
        };
        if is_unchanged {
            return FileChanges::default();
        }
        let Ok(workspace) = self.program.workspace.try_clone() else {
            return FileChanges::default();
        };
        let layers = self.program.layers.as_ref().and_then(|layers| layers.try_clone().ok());
        // Finds no process if the guest is dead, or has no cells.
        let freezer = self.cell_processes.freezer.clone();
        let (before, user_dir) = (std::mem::take(&mut self.files), self.user_dir.take());
        let look = move || {
            Ok(match (user_dir, layers) {
                (Some(mut dir), Some(layers)) => {
                    // Frozen, so that no file is copied half written.
                    let changes = match freezer.freeze() {
                        Ok(frozen) => {
                            let changes = dir.commit(&layers, &keep);
                            if !frozen.is_still() {
                                tracing::debug!("a session's processes ran during a commit");
                            }
                            changes
                        }
                        Err(error) => report_failed_commit(&error),
                    };
                    (changes, before, Some(dir))
                }
                (Some(dir), None) => (FileChanges::default(), before, Some(dir)),
                (None, _) => {
                    let (changes, after) = files::collect(workspace, &before, &keep);
                    (changes, after, None)
                }
            })
        };
        let Ok((changes, after, user_dir)) = run_blocking(look).await else {
            return FileChanges::default();
        };
        (self.files, self.user_dir) = (after, user_dir);
        changes
    }
}
