//! What SQLite's errors mean for a caller of the store.

use std::{error::Error, path::Path, sync::Arc};

use rusqlite::ErrorCode;

use super::checkpoint::measure_space;
use crate::{StoreError, disk_space::DiskSpace, error::Cause};

const OPEN_ADVICE: &str = "its folder must exist and be writable";

pub(crate) fn open_error(path: &Path, source: impl Error + Send + Sync + 'static) -> StoreError {
    let source: Cause = Arc::new(source);
    let is_corrupt = is_corrupt_cause(&source);
    let database = path.display().to_string();
    if is_corrupt {
        StoreError::Corrupt { database, source }
    } else {
        StoreError::Open { database, advice: OPEN_ADVICE, source }
    }
}

pub(crate) fn write_error(path: &Path, source: Cause) -> StoreError {
    let space = measure_space(path);
    if is_full(&source, space) {
        return StoreError::full(path, space);
    }
    let database = path.display().to_string();
    if is_corrupt_cause(&source) {
        StoreError::Corrupt { database, source }
    } else {
        StoreError::Write { database, source }
    }
}

pub(crate) fn read_error(path: &Path, source: Cause) -> StoreError {
    if code_of(&source) == Some(ErrorCode::OperationInterrupted) {
        return StoreError::TooSlow;
    }
    let database = path.display().to_string();
    if is_corrupt_cause(&source) {
        StoreError::Corrupt { database, source }
    } else {
        StoreError::Read { database, source }
    }
}

/// Returns true for an error that says that the file is damaged or not a database.
pub(crate) fn is_corrupt(err: &rusqlite::Error) -> bool {
    let code = err.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn is_corrupt_cause(cause: &Cause) -> bool {
    cause.downcast_ref().is_some_and(is_corrupt)
}

/// Returns true for a full disk. SQLite reports that as an I/O error for files that it maps.
fn is_full(cause: &Cause, space: Option<DiskSpace>) -> bool {
    let code = code_of(cause);
    let is_low = space.is_some_and(DiskSpace::is_low);
    code == Some(ErrorCode::DiskFull) || code == Some(ErrorCode::SystemIoFailure) && is_low
}

fn code_of(cause: &Cause) -> Option<ErrorCode> {
    cause.downcast_ref().and_then(rusqlite::Error::sqlite_error_code)
}
