use std::{error::Error, path::Path, sync::Arc};

use codexec_types::ExecutionId;
use rusqlite::ErrorCode;

use crate::room::Room;

/// What lies beneath a failure. Shared, because one failed commit fails every write in it.
pub(crate) type Cause = Arc<dyn Error + Send + Sync>;

/// Why the store could not do what was asked; a variant for each thing a caller can do about it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing works without the file: tell the user, and stop.
    #[error("the database {path} cannot be opened; its folder must exist and be writable")]
    Open { path: String, source: Cause },
    #[error("the database {path} is damaged, or is no database; move it away to start a new one")]
    Corrupt { path: String, source: Cause },
    #[error(
        "the database {path} has schema version {found}, and this codexec knows versions up to \
         {known}; update codexec, or choose another CODEXEC_HOME"
    )]
    Newer { path: String, found: u32, known: u32 },
    /// What was to be written is not on disk: do not go on as if it were.
    #[error("the database {path} cannot be written")]
    Write { path: String, source: Cause },
    /// The same, and somebody has to make room. It goes on by itself then.
    #[error(
        "the disk is full: {free_bytes} bytes are free where {path} is, and {needed_bytes} are \
         needed; make room, or lower `logs.max-mib`"
    )]
    Full { path: String, free_bytes: u64, needed_bytes: u64 },
    #[error("the database {path} cannot be read")]
    Read { path: String, source: Cause },
    /// Ask for less.
    #[error(
        "the search took too long and was broken off; narrow it by time, language, status or \
         rarer words"
    )]
    TooSlow,
    /// It was never begun, or is already finished: a mistake of the caller.
    #[error("execution {0} is not running")]
    NotRunning(ExecutionId),
}

impl StoreError {
    /// Stable word for clients and metrics.
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
        if is_damage(&source) {
            StoreError::Corrupt { path, source }
        } else {
            StoreError::Open { path, source }
        }
    }

    pub(crate) fn write(path: &Path, source: Cause) -> StoreError {
        let room = Room::at(path);
        if is_full(&source, room) {
            return StoreError::full(path, room);
        }
        let path = path.display().to_string();
        if is_damage(&source) {
            StoreError::Corrupt { path, source }
        } else {
            StoreError::Write { path, source }
        }
    }

    pub(crate) fn full(path: &Path, room: Option<Room>) -> StoreError {
        StoreError::Full {
            path: path.display().to_string(),
            free_bytes: room.map_or(0, |room| room.free_bytes),
            needed_bytes: room.map_or(0, |room| room.needed_bytes),
        }
    }

    pub(crate) fn read(path: &Path, source: Cause) -> StoreError {
        let code = source.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
        if code == Some(ErrorCode::OperationInterrupted) {
            return StoreError::TooSlow;
        }
        let path = path.display().to_string();
        if is_damage(&source) {
            StoreError::Corrupt { path, source }
        } else {
            StoreError::Read { path, source }
        }
    }

    pub(crate) fn newer(path: &Path, found: u32, known: u32) -> StoreError {
        StoreError::Newer { path: path.display().to_string(), found, known }
    }
}

/// SQLite has several words for it: some of its files it maps, and others it writes.
fn is_full(cause: &Cause, room: Option<Room>) -> bool {
    let code = cause.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
    let is_short = room.is_some_and(Room::is_short);
    code == Some(ErrorCode::DiskFull) || code == Some(ErrorCode::SystemIoFailure) && is_short
}

fn is_damage(cause: &Cause) -> bool {
    let code = cause.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}
