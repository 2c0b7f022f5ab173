//! Keeps and reads executions, in one SQLite file that several server processes may share.
//!
//! Invariant: no execution is finished twice, and none stays `running` after its server died
//! and another one looked. No task ever waits for the disk or for another process.

mod checkpoint;
mod database;
mod error;
mod execution;
mod executions;
mod owner;
mod schema;
mod store;
mod writer;

pub use error::StoreError;
pub use execution::{Counts, Execution, Finish, Status, Summary};
pub use store::Store;
