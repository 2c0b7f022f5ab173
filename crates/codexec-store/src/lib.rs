//! Stores executions and sessions, in one folder that several server processes may share.
//!
//! The rows of one SQLite file are the source of truth (`store.rs`). A background thread
//! (`log_thread.rs`) writes the log files (`journal.rs`) and updates the search index
//! (`index.rs`); both can be rebuilt from the rows.
//!
//! Invariant: no execution is finished twice, and none stays `running` after its server died and
//! another one has checked. Every end is in its log file exactly once. Secrets are masked before
//! anything is stored. No async task ever waits for the disk or for another process.

mod calls;
mod checkpoint;
mod database;
mod disk_space;
mod error;
mod execution;
mod index;
mod journal;
mod log_line;
mod log_thread;
mod mask;
mod owner;
mod pending_ends;
mod query;
mod read;
mod readers;
mod record;
mod retention;
mod savepoint;
mod schema;
mod search;
mod sessions;
mod store;
mod write;
mod writer;

pub use error::StoreError;
pub use execution::{
    CallRecord, CoarseStatus, ExecutionCounts, ExecutionRecord, ExecutionStatus, ExecutionSummary,
    SessionRecord,
};
pub use mask::mask;
pub use query::{LogMatch, LogPage, LogQuery, ReadScope, SessionQuery};
pub use record::{
    CallEnd, CallStart, Durability, ExecutionEnd, ExecutionStart, PackageInstall, PackageTarget,
    SessionStart,
};
pub use retention::{Retention, RetentionReport};
pub use store::Store;
