use std::{error::Error, path::Path, sync::Arc};

use codexec_types::ExecutionId;

use crate::disk_space::DiskSpace;

/// The source of an error. Shared, because one failed commit fails every write in it.
pub(crate) type Cause = Arc<dyn Error + Send + Sync>;

/// An error of the store, with a variant for each reaction of a caller.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store does not work without the file, so the caller should report this and exit.
    #[error("the database {database} cannot be opened; {advice}")]
    Open { database: String, advice: &'static str, source: Cause },
    #[error(
        "the database {database} is damaged or not a database; move it away to start a new one"
    )]
    Corrupt { database: String, source: Cause },
    #[error(
        "the database {database} has schema version {found}, but this codexec supports versions up to \
         {known}; update codexec, or choose another CODEXEC_HOME"
    )]
    Newer { database: String, found: u32, known: u32 },
    /// The data is not on disk, so the caller must not continue as if it were.
    #[error("the database {database} cannot be written")]
    Write { database: String, source: Cause },
    /// Like `Write`, until someone frees space. The store then recovers without a restart.
    #[error(
        "the disk is full: {database} has {free_bytes} bytes free and needs {needed_bytes}; free some \
         space, or lower `logs.max-mib`"
    )]
    Full { database: String, free_bytes: u64, needed_bytes: u64 },
    #[error("the database {database} cannot be read")]
    Read { database: String, source: Cause },
    /// The caller should narrow the search.
    #[error(
        "the search took too long and was stopped; narrow it by time, language, status or rarer \
         words"
    )]
    TooSlow,
    /// A bug of the caller: the execution was never begun, or is already finished.
    #[error("execution {0} is not running")]
    NotRunning(ExecutionId),
}

impl StoreError {
    /// Returns the stable error code for clients and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            StoreError::Open { .. } => "store_open",
            StoreError::Corrupt { .. } => "store_corrupt",
            StoreError::Newer { .. } => "store_newer",
            StoreError::Write { .. } => "store_write",
            StoreError::Full { .. } => "store_full",
            StoreError::Read { .. } => "store_read",
            StoreError::TooSlow => "store_too_slow",
            StoreError::NotRunning(_) => "store_not_running",
        }
    }

    pub(crate) fn full(database: &Path, space: Option<DiskSpace>) -> StoreError {
        StoreError::Full {
            database: database.display().to_string(),
            free_bytes: space.map_or(0, |space| space.free_bytes),
            needed_bytes: space.map_or(0, |space| space.needed_bytes),
        }
    }
}
