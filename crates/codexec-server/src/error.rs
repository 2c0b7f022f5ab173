use codexec_exec::ExecError;
use codexec_store::StoreError;
use codexec_types::Refusal;

use crate::inside::MAX_DEPTH;
use crate::{DirError, SessionError};

/// Why an execution did not take place. A guest's own failure is not among it.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    WorkingDir(#[from] DirError),
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error("the execution cannot be written down, so it does not run")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("code may start code that starts code, but not more than {MAX_DEPTH} deep")]
    TooDeep,
    #[error("the operating system gives no random numbers")]
    NoRandomness,
}

impl ExecuteError {
    /// Stable word for clients and metrics.
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
