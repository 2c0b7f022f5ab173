//! Files that guests write: collected from their own workspace, or committed to a user's directory.
//!
//! Invariant: no path that a guest could change is followed. Every file is opened beneath a
//! directory descriptor, without following links, and checked before it is read.

mod commit;
mod held_back;
mod kept;
mod ledger;
mod listing;
mod moment;
mod place;
mod tree;
mod workspace;

pub(crate) use commit::Commit;
pub(crate) use kept::KeptFiles;
pub(crate) use ledger::Ledger;
pub(crate) use listing::Listing;
pub(crate) use moment::Moment;
pub(crate) use tree::Tree;
pub(crate) use workspace::{WorkspaceFiles, collect, is_empty};
