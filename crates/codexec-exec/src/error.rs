use std::io;
use std::time::Duration;

use codexec_sandbox::LayerError;

/// Why a run did not start. After the start a run cannot fail, it can only end.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error("all {cap} workers are busy and {queued} requests wait; try again in {} s", .retry_after.as_secs())]
    Busy { cap: usize, queued: usize, retry_after: Duration },
    #[error(
        "{0}; run `codexec doctor` for help, or turn the layer off by name with `sandbox.lowered` \
         in config.toml"
    )]
    Sandbox(LayerError),
    #[error("{0}")]
    Interpreter(String),
    #[error("working_dir: {0}")]
    WorkingDir(String),
    #[error("the worker did not start")]
    Start(#[source] io::Error),
}

impl ExecError {
    /// Returns a stable word for clients and metrics: a closed set, pinned by a test.
    pub fn code(&self) -> &'static str {
        match self {
            ExecError::Busy { .. } => "BUSY",
            ExecError::Sandbox(_) => "SANDBOX_UNAVAILABLE",
            ExecError::Interpreter(_) => "INTERPRETER_UNAVAILABLE",
            ExecError::WorkingDir(_) => "WORKING_DIR_UNAVAILABLE",
            ExecError::Start(_) => "WORKER_START",
        }
    }
}

impl From<io::Error> for ExecError {
    fn from(source: io::Error) -> ExecError {
        ExecError::Start(source)
    }
}
