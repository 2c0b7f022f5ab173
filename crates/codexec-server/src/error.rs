use codexec_exec::ExecError;
use codexec_store::StoreError;
use codexec_types::Refusal;

use crate::DirError;

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
            ExecuteError::NoRandomness => "NO_RANDOMNESS",
        }
    }
}
