//! Files that guests write: what they left in a workspace of their own, and what of it goes into
//! a directory of the user's.
//!
//! Invariant: no path that a guest could change is followed. Everything is opened beneath a
//! descriptor, without links, and looked at before it is read.

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
pub(crate) use workspace::{WorkspaceFiles, collect, is_empty, snapshot};
