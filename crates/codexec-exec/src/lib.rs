//! Turn an admitted request into a run of events.
//!
//! Invariant: this crate never calls anybody back. A [`Run`] yields events and takes answers;
//! where tools live and who asked is not known here.

mod error;
mod pool;
mod run;
mod slot;
mod wire;

pub use error::ExecError;
pub use pool::{Python, Settings, Workers};
pub use run::{Run, Usage};
