//! Files that guests write: collected from their own workspace, or committed to a user's directory.
//!
//! Invariant: no path that a guest could change is followed. Every file is opened beneath a
//! directory descriptor, without following links, and checked before it is read.

mod artifact_copies;
mod change_report;
mod commit;
mod dir_tree;
mod entry_writer;
mod file_time;
mod held_back;
mod ledger;
mod moves;
mod workspace;

pub(crate) use artifact_copies::ArtifactCopies;
pub(crate) use change_report::ChangeReport;
pub(crate) use commit::{Commit, CommitProgress};
pub(crate) use dir_tree::DirTree;
pub(crate) use file_time::FileTime;
pub(crate) use held_back::{HeldBackRules, find_location_reason};
pub(crate) use ledger::CommitLedger;
pub(crate) use workspace::{WorkspaceFiles, collect, is_empty, snapshot};
