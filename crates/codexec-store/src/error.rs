use std::{error::Error, path::Path, sync::Arc};

use codexec_types::ExecutionId;
use rusqlite::ErrorCode;

use crate::disk_space::DiskSpace;

/// The source of an error. Shared, because one failed commit fails every write in it.
pub(crate) type Cause = Arc<dyn Error + Send + Sync>;

/// An error of the store, with a variant for each reaction of a caller.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store does not work without the file, so the caller should report this and exit.
    #[error("the database {path} cannot be opened; its folder must exist and be writable")]
    Open { path: String, source: Cause },
    #[error("the database {path} is damaged or not a database; move it away to start a new one")]
    Corrupt { path: String, source: Cause },
    #[error(
        "the database {path} has schema version {found}, but this codexec supports versions up to \
         {known}; update codexec, or choose another CODEXEC_HOME"
    )]
    Newer { path: String, found: u32, known: u32 },
    /// The data is not on disk, so the caller must not continue as if it were.
    #[error("the database {path} cannot be written")]
    Write { path: String, source: Cause },
    /// Like `Write`, until someone frees space. The store then recovers without a restart.
    #[error(
        "the disk is full: {path} has {free_bytes} bytes free and needs {needed_bytes}; free some \
         space, or lower `logs.max-mib`"
    )]
    Full { path: String, free_bytes: u64, needed_bytes: u64 },
    #[error("the database {path} cannot be read")]
    Read { path: String, source: Cause },
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

    pub(crate) fn open(path: &Path, source: impl Error + Send + Sync + 'static) -> StoreError {
        let source: Cause = Arc::new(source);
        let path = path.display().to_string();
        if is_corrupt(&source) {
            StoreError::Corrupt { path, source }
        } else {
            StoreError::Open { path, source }
        }
    }

    pub(crate) fn write(path: &Path, source: Cause) -> StoreError {
        let space = DiskSpace::measure(path);
        if is_full(&source, space) {
            return StoreError::full(path, space);
        }
        let path = path.display().to_string();
        if is_corrupt(&source) {
            StoreError::Corrupt { path, source }
        } else {
            StoreError::Write { path, source }
        }
    }

    pub(crate) fn full(path: &Path, space: Option<DiskSpace>) -> StoreError {
        StoreError::Full {
            path: path.display().to_string(),
            free_bytes: space.map_or(0, |space| space.free_bytes),
            needed_bytes: space.map_or(0, |space| space.needed_bytes),
        }
    }

    pub(crate) fn read(path: &Path, source: Cause) -> StoreError {
        let code = source.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
        if code == Some(ErrorCode::OperationInterrupted) {
            return StoreError::TooSlow;
        }
        let path = path.display().to_string();
        if is_corrupt(&source) {
            StoreError::Corrupt { path, source }
        } else {
            StoreError::Read { path, source }
        }
    }

    pub(crate) fn newer(path: &Path, found: u32, known: u32) -> StoreError {
        StoreError::Newer { path: path.display().to_string(), found, known }
    }
}

/// Returns true for a full disk. SQLite reports that as an I/O error for files that it maps.
fn is_full(cause: &Cause, space: Option<DiskSpace>) -> bool {
    let code = cause.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
    let is_low = space.is_some_and(DiskSpace::is_low);
    code == Some(ErrorCode::DiskFull) || code == Some(ErrorCode::SystemIoFailure) && is_low
}

fn is_corrupt(cause: &Cause) -> bool {
    let code = cause.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}
