//! The table of all pools.

use std::sync::Arc;

use crate::ExecError;
use crate::pool::{HostResources, Pool, PoolLoad};
use crate::worker_kind::WorkerKind;

/// Each kind of worker with its pool. A body that is not in a worker has a pool of its own here.
///
/// Methods that concern all pools name every field, so that the compiler finds a forgotten one.
pub(crate) struct Pools {
    engine: Arc<Pool>,
    python: Arc<Pool>,
    bash: Arc<Pool>,
    node: Arc<Pool>,
}

impl Pools {
    /// Creates the pools. No process is started yet.
    pub(crate) fn new(resources: &Arc<HostResources>) -> Pools {
        let pool = |kind| Arc::new(Pool::new(kind, Arc::clone(resources)));
        Pools {
            engine: pool(WorkerKind::Engine),
            python: pool(WorkerKind::Python),
            bash: pool(WorkerKind::Bash),
            node: pool(WorkerKind::Node),
        }
    }

    pub(crate) fn of(&self, kind: WorkerKind) -> &Arc<Pool> {
        match kind {
            WorkerKind::Engine => &self.engine,
            WorkerKind::Python => &self.python,
            WorkerKind::Bash => &self.bash,
            WorkerKind::Node => &self.node,
        }
    }

    /// Fills the pools. A language without an interpreter on this machine is skipped.
    pub(crate) async fn warm(&self) -> Result<(), ExecError> {
        let Pools { engine, python, bash, node } = self;
        engine.warm().await?;
        for pool in [python, bash, node] {
            match pool.warm().await {
                Err(error @ ExecError::Interpreter(_)) => {
                    tracing::debug!(%error, "pool not warmed: no interpreter")
                }
                other => other?,
            }
        }
        Ok(())
    }

    pub(crate) fn loads(&self) -> [PoolLoad; 4] {
        let Pools { engine, python, bash, node } = self;
        [engine, python, bash, node].map(|pool| pool.load())
    }

    /// Drops the zygotes and all idle slots.
    pub(crate) fn empty(&self) {
        let Pools { engine, python, bash, node } = self;
        for pool in [engine, python, bash, node] {
            pool.renew();
        }
    }
}
