//! Keeps and reads executions and sessions, in one folder that several server processes may share.
//!
//! The rows of one SQLite file are the truth (`store.rs`). A thread behind the requests
//! (`clerk.rs`) writes the log files after them (`journal.rs`) and fills the search index
//! (`index.rs`); either can be made again from the rows.
//!
//! Invariant: no execution is finished twice, and none stays `running` after its server died
//! and another one looked. Every end stands in its log file exactly once. Nothing is stored before
//! it was masked. No task ever waits for the disk or for another process.

mod calls;
mod checkpoint;
mod clerk;
mod database;
mod entry;
mod error;
mod execution;
mod index;
mod journal;
mod late;
mod mask;
mod owner;
mod query;
mod read;
mod readers;
mod record;
mod retention;
mod room;
mod savepoint;
mod schema;
mod search;
mod sessions;
mod store;
mod write;
mod writer;

pub use error::StoreError;
pub use execution::{Call, Counts, Execution, Kind, Session, Status, Summary};
pub use mask::mask;
pub use query::{Found, LogPage, LogQuery};
pub use record::{Begin, CallEnd, Durability, Finish, SessionStart, ToolCall};
pub use retention::{Removed, Retention};
pub use store::Store;
