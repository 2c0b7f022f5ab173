//! The operations of a body that only sessions need.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codexec_types::{FileChanges, Limit, Outcome, Thrown};

use super::{Body, BodyEvent, EngineBody, Interrupt, Observed, ProgramsBody};
use crate::process_tree::TreeUsage;
use crate::{ExecError, slot};

impl Body {
    /// Prepares the next cell of a session, and returns the descriptors to send with it.
    pub(in crate::run) fn begin_cell(&mut self, memory_bytes: u64) -> io::Result<Vec<OwnedFd>> {
        match self {
            Body::Engine(body) => {
                body.begin_cell();
                Ok(Vec::new())
            }
            Body::Programs(body) => body.begin_cell(memory_bytes),
        }
    }

    /// Hands over all output that was written so far. Does not wait.
    pub(in crate::run) fn read_available(&mut self, take: impl FnMut(BodyEvent)) {
        match self {
            Body::Engine(_) => {}
            Body::Programs(body) => body.read_available(take),
        }
    }

    /// Like [`Body::read_available`], when the guest has reported the end of its cell, and so has
    /// written all of the cell's output.
    pub(in crate::run) fn read_rest_of_cell(&mut self, take: impl FnMut(BodyEvent)) {
        match self {
            Body::Engine(_) => {}
            Body::Programs(body) => body.read_rest_of_cell(take),
        }
    }

    /// Interrupts the cell of a session. The guest also gets a frame, which code that computes does
    /// not read.
    pub(in crate::run) fn interrupt(&mut self) -> Interrupt {
        match self {
            Body::Engine(_) => Interrupt::Sent,
            Body::Programs(body) => body.interrupt(),
        }
    }

    /// Ends what an interrupt has left of the cell.
    pub(in crate::run) fn end_cell(&mut self) {
        match self {
            Body::Engine(_) => {}
            Body::Programs(body) => body.end_cell(),
        }
    }

    /// Prepares for the time between two cells, with the interval until the next check.
    pub(in crate::run) fn begin_idle(&mut self, check_in: Duration) {
        match self {
            Body::Engine(_) => {}
            Body::Programs(body) => body.begin_idle(check_in),
        }
    }

    /// Measures a session between two cells. Also returns the memory that it holds.
    pub(in crate::run) fn measure_session(&mut self) -> (TreeUsage, u64) {
        match self {
            Body::Engine(body) => body.measure_session(),
            Body::Programs(body) => body.measure_session(),
        }
    }

    /// Returns the memory that the main process of a session holds.
    pub(in crate::run) fn main_process_bytes(&self) -> u64 {
        match self {
            Body::Engine(EngineBody { stats, .. }) | Body::Programs(ProgramsBody { stats, .. }) => {
                stats.measure().memory_bytes
            }
        }
    }

    /// Returns the limits that a session has reached since the last call.
    pub(in crate::run) fn take_reached_limits(&mut self) -> Vec<Limit> {
        match self {
            Body::Engine(_) => Vec::new(),
            Body::Programs(body) => body.take_reached_limits(),
        }
    }

    /// Decides the outcome of a cell that threw an error.
    pub(in crate::run) fn judge_thrown(&self, thrown: Thrown, observed: &Observed) -> Outcome {
        match self {
            Body::Engine(body) => body.judge_thrown(thrown, observed),
            Body::Programs(body) => body.judge_thrown(thrown, observed),
        }
    }

    /// True if a session can run cells after a cell with this outcome.
    pub(in crate::run) fn is_usable_after(&self, outcome: &Outcome) -> bool {
        match self {
            // The engine drops promises when it is out of memory, so its state is not usable.
            Body::Engine(_) => *outcome != Outcome::Stopped(Limit::Memory),
            Body::Programs(_) => true,
        }
    }

    /// Adds the changes of a session since its last cell to `between`, and gives the session a
    /// current view of the user's directory. After an error, the session must be closed.
    pub(in crate::run) async fn refresh_directory(
        &mut self,
        keep: PathBuf,
        between: &mut FileChanges,
    ) -> Result<(), ExecError> {
        match self {
            Body::Engine(_) => Ok(()),
            Body::Programs(body) => body.refresh_directory(keep, between).await,
        }
    }

    /// Replaces the upper layer of the user's directory.
    pub(in crate::run) async fn renew_overlay(
        &mut self,
        generation: u32,
        lower: OwnedFd,
    ) -> Result<(), ExecError> {
        match self {
            Body::Engine(_) => Err(slot::protocol_error()),
            Body::Programs(body) => body.renew_overlay(generation, lower).await,
        }
    }

    /// Commits what a dead session wrote since its last cell, and returns the changes.
    pub(in crate::run) async fn commit_rest(&mut self, artifacts: &Path) -> FileChanges {
        match self {
            Body::Engine(_) => FileChanges::default(),
            Body::Programs(body) => body.commit_rest(artifacts).await,
        }
    }
}
