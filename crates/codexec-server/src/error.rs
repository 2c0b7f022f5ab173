use std::time::Duration;

use codexec_exec::ExecError;
use codexec_store::StoreError;
use codexec_types::PolicyRefusal;

use crate::outer_execution::MAX_DEPTH;
use crate::{DirError, SessionError};

/// The reason why an execution did not take place. A guest's own failure is not an error.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Refused(#[from] PolicyRefusal),
    #[error(transparent)]
    WorkingDir(#[from] DirError),
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error("the execution was not run, because its record cannot be written")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("code that is started by code may be nested at most {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("the operating system returned no random numbers")]
    NoRandomness,
}

impl ExecuteError {
    /// Names an ended session by the handle that the client gave: a client that uses names can send
    /// its code again, and has no `start_session`.
    pub(crate) fn with_session_handle(self, handle: &str) -> ExecuteError {
        match self {
            ExecuteError::Session(SessionError::Ended { id, reason }) if id.as_str() != handle => {
                SessionError::EndedUnseen { name: handle.to_owned(), reason }.into()
            }
            error => error,
        }
    }

    /// Returns how long to wait before the same request may succeed, if waiting helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            ExecuteError::Exec(ExecError::Busy { retry_after, .. }) => Some(*retry_after),
            ExecuteError::Exec(_)
            | ExecuteError::Refused(_)
            | ExecuteError::WorkingDir(_)
            | ExecuteError::Store(_)
            | ExecuteError::Session(_)
            | ExecuteError::TooDeep
            | ExecuteError::NoRandomness => None,
        }
    }

    /// Returns a stable code for clients and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            ExecuteError::Refused(refusal) => refusal.code(),
            ExecuteError::WorkingDir(error) => error.code(),
            ExecuteError::Exec(error) => error.code(),
            ExecuteError::Store(_) => "STORE_UNAVAILABLE",
            ExecuteError::Session(error) => error.code(),
            ExecuteError::TooDeep => "TOO_DEEP",
            ExecuteError::NoRandomness => "NO_RANDOMNESS",
        }
    }
}
