//! Stores executions and sessions, in one folder that several server processes may share.
//!
//! [`Store`] is the one way in (`store.rs`). Records are masked and truncated here, and become rows
//! (`*_row.rs`); a database stores them. Only `sqlite.rs` and what is below it know SQLite. The log
//! files (`journal.rs`) can be rebuilt from the rows.
//!
//! Invariant: no execution is finished twice, and none stays `running` after its server died and
//! another one has checked. Every end is in its log file exactly once. Secrets are masked before
//! anything is stored. No async task ever waits for the disk or for another process.

mod call_row;
mod disk_space;
mod error;
mod execution;
mod execution_row;
mod journal;
mod log_line;
mod mask;
mod pending_ends;
mod query;
mod record;
mod retention;
mod session_row;
mod sqlite;
mod store;

pub use error::StoreError;
pub use execution::{
    CallRecord, CoarseStatus, ExecutionCounts, ExecutionRecord, ExecutionStatus, ExecutionSummary,
    ExecutionTotals, SessionRecord,
};
pub use mask::mask;
pub use query::{LogMatch, LogPage, LogQuery, ReadScope, SessionQuery};
pub use record::{
    CallEnd, CallStart, Durability, ExecutionEnd, ExecutionStart, PackageInstall, PackageTarget,
    SessionStart,
};
pub use retention::{Retention, RetentionReport};
pub use store::Store;
