//! Turns an admitted request into a [`Run`] of events.
//!
//! Invariant: this crate never calls back into its caller. A [`Run`] yields events and takes
//! answers; it does not know where tools live or who sent the request.

mod clock;
mod error;
mod evidence;
mod files;
mod frames;
mod freeze;
mod interpreter;
mod memory;
mod nursery;
mod output;
mod package_mounter;
pub mod packages;
mod placement;
mod pool;
mod pools;
mod process_tree;
mod program;
mod queue;
mod run;
mod settings;
mod slot;
mod stdin;
mod user_dir;
mod worker_kind;
mod workers;
mod zygote;

pub use error::ExecError;
pub use interpreter::list_interpreters;
pub use package_mounter::PackageMounter;
pub use pool::PoolLoad;
pub use queue::QueueTicket;
pub use run::{Run, SessionEnd, Usage};
pub use settings::{FileSettings, GuestSettings, PythonSettings, Settings};
pub use stdin::GuestStdin;
pub use workers::Workers;
