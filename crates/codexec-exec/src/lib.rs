//! Turns an admitted request into a [`Run`] of events.
//!
//! Invariant: this crate never calls back into its caller. A [`Run`] yields events and takes
//! answers; it does not know where tools live or who sent the request.

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
