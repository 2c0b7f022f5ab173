//! The road of a request, and its edges.
//!
//! Invariant: whatever asks for code to run, it goes through [`App::execute`]. No edge talks to
//! a worker, an upstream or the database by itself.

mod budget;
mod error;
mod execute;
pub mod mcp;
mod records;
mod reply;
mod tool_text;

pub use budget::Budget;
pub use error::ExecuteError;
pub use execute::{App, Execution, Progress};
pub use records::Records;
pub use reply::{Reply, explanation, failure, reply};
pub use tool_text::tool_text;
