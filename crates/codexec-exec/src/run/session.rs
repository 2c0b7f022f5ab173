//! The session around a guest: cells, one at a time, and the time between them.

mod cell;
mod end;
mod idle;
mod late_output;
mod renewal;

use std::path::PathBuf;

use codexec_types::{FileChanges, Outcome, OutputStream};

use self::late_output::LateOutput;
use super::body::BodyEvent;
use super::{Run, RunState};

pub use self::end::SessionEnd;

/// The state of a session besides its current cell.
#[derive(Default)]
pub(super) struct Session {
    /// The key of the current or last cell.
    key: String,
    end: Option<SessionEnd>,
    late_output: LateOutput,
    /// The directory for artifacts of the last cell.
    artifacts: Option<PathBuf>,
    /// Changes of the user's directory since the last reply, which the next reply reports.
    between: FileChanges,
}

impl Session {
    /// Records why the session ended. The first reason counts.
    pub(super) fn note_end(&mut self, end: SessionEnd) {
        self.end.get_or_insert(end);
    }

    /// Stores output that is not of the current cell.
    pub(super) fn store_late_output(&mut self, stream: OutputStream, text: &str) {
        self.late_output.push(stream, text);
    }

    /// Adds what happened before the cell to the cell's changes.
    pub(super) fn complete_changes(&mut self, mut changes: FileChanges) -> FileChanges {
        let between = std::mem::take(&mut self.between);
        changes.between_cells = (!between.is_empty()).then(|| Box::new(between));
        changes
    }

    /// Remembers the directory for artifacts, where files that are written after the cell go too.
    pub(super) fn note_artifacts(&mut self, artifacts: PathBuf) {
        self.artifacts = Some(artifacts);
    }
}

impl Run {
    /// Returns why the session ended, if it has.
    pub fn session_end(&self) -> Option<SessionEnd> {
        self.session.as_ref().and_then(|session| session.end)
    }

    /// Returns the memory that the session held at the end of the last cell, or when it was opened.
    pub fn memory_bytes(&self) -> u64 {
        self.conversation.usage.held_bytes
    }

    /// Returns the host process id of the guest's first process, or of its closest known ancestor.
    pub fn pid(&self) -> Option<i32> {
        self.body.pid()
    }

    /// Commits the files that background processes wrote since the last cell, and gives the guest a
    /// current view of its directory. The cell's changes report the committed files. `keep` is the
    /// cell's artifact folder.
    pub async fn refresh_directory(&mut self, keep: PathBuf) {
        if let RunState::Dying(..) = self.state {
            // The guest has exited since the last cell, and nobody has waited for its end yet.
            self.wait_for_death().await;
        }
        let Some(session) = &mut self.session else { return };
        if session.end.is_some() {
            return;
        }
        if let Err(error) = self.body.refresh_directory(keep, &mut session.between).await {
            tracing::warn!(%error, "cannot refresh a session's directory");
            // Usually the guest has exited a moment ago. If it has not, the directory's two paths may
            // show different layers now, so it must not go on.
            session.note_end(SessionEnd::Exited);
            self.body.kill();
        }
    }

    /// Ends a session, and returns its changes to the directory since the last reply. Nothing of the
    /// session is left afterwards.
    pub async fn close(&mut self) -> FileChanges {
        if let Some(session) = &mut self.session {
            session.note_end(SessionEnd::Closed);
        }
        if self.body.is_occupied() {
            self.state = RunState::Dying(Some(Outcome::Cancelled), None);
            self.wait_for_death().await;
        }
        let Some(session) = &mut self.session else { return FileChanges::default() };
        let mut rest = std::mem::take(&mut session.between);
        if let Some(artifacts) = &session.artifacts {
            rest.append(self.body.commit_rest(artifacts).await);
        }
        rest
    }

    /// Measures the session. Usage of the next cell, or of the idle period, is counted from here.
    fn start_counting(&mut self) {
        let (used, held_bytes) = self.body.measure_session();
        self.conversation.usage.restart(used, held_bytes);
    }

    /// Stores what is in the pipes before a cell starts, because it is not the cell's output.
    fn collect_late_output(&mut self) {
        let Some(session) = &mut self.session else { return };
        self.body.read_available(|event| match event {
            BodyEvent::Output(stream, text, _) | BodyEvent::LateOutput(stream, text) => {
                session.store_late_output(stream, &text);
            }
            BodyEvent::CheckDue | BodyEvent::Ended(_) => {}
        });
    }
}
