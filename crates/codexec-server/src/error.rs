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
