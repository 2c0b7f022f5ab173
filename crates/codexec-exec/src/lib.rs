//! Turn an admitted request into a run of events.
//!
//! Invariant: this crate never calls anybody back. A [`Run`] yields events and takes answers;
//! where tools live and who asked is not known here.

mod clock;
mod engine;
mod error;
mod files;
mod freeze;
mod furnisher;
mod interpreter;
mod judge;
mod memory;
mod nursery;
mod output;
pub mod packages;
mod pool;
mod program;
mod run;
mod session;
mod settings;
mod slot;
mod user_dir;
mod watch;
mod wire;
mod workers;
mod zygote;

pub use error::ExecError;
pub use furnisher::Furnisher;
pub use interpreter::interpreters;
pub use run::{Over, Run, Usage};
pub use settings::{Files, Python, Settings};
pub use workers::{Place, Workers};
