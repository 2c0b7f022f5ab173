use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{Posture, WorkerExit, ZygoteLink};

use crate::pool::{HostResources, PoolLease};
use crate::slot::{BusySlot, KillOnDrop};

/// Timeout for a killed worker to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A worker that occupies a slot of a pool. Dropping this kills the worker.
pub(super) struct PooledWorker {
    pub(super) handles: KillOnDrop,
    /// `None` when the worker is dead and the slot was left.
    pub(super) busy: Option<BusySlot>,
    end: WorkerEnd,
    lease: PoolLease,
    posture: Posture,
    /// Host process ids from which all of the guest's processes descend.
    pub(super) roots: Vec<i32>,
}

enum WorkerEnd {
    NotObserved,
    Reaped(WorkerExit),
    /// The keeper did not report the exit in time.
    Lost,
}

impl PooledWorker {
    pub(super) fn new(
        handles: KillOnDrop,
        busy: BusySlot,
        lease: PoolLease,
        roots: Vec<i32>,
    ) -> PooledWorker {
        let posture = busy.base.posture.clone();
        let end = WorkerEnd::NotObserved;
        PooledWorker { handles, busy: Some(busy), end, lease, posture, roots }
    }

    pub(super) fn kill(&self) {
        self.handles.kill();
    }

    /// Kills the worker and waits until it is reaped. Cancel-safe: the exit is kept.
    pub(super) async fn wait_for_exit(&mut self) {
        self.handles.kill();
        if let (WorkerEnd::NotObserved, Some(busy)) = (&self.end, &mut self.busy) {
            let reaped = tokio::time::timeout(EXIT_TIMEOUT, busy.wait_for_exit()).await;
            self.end = match reaped {
                Ok(Ok(exit)) => WorkerEnd::Reaped(exit),
                Ok(Err(_)) | Err(_) => WorkerEnd::Lost,
            };
        }
    }

    pub(super) fn exit(&self) -> Option<WorkerExit> {
        match self.end {
            WorkerEnd::Reaped(exit) => Some(exit),
            WorkerEnd::NotObserved | WorkerEnd::Lost => None,
        }
    }

    /// Leaves the slot. A slot whose worker was not reaped is not reused; dropping it kills the
    /// worker.
    pub(super) fn vacate(&mut self) {
        if let (Some(busy), WorkerEnd::Reaped(_)) = (self.busy.take(), &self.end) {
            self.lease.give_back(busy);
        }
    }

    pub(super) fn is_occupied(&self) -> bool {
        self.busy.is_some()
    }

    /// True if the kernel's OOM killer killed a process of the guest.
    pub(super) fn has_run_out_of_memory(&self) -> bool {
        self.busy.as_ref().is_some_and(BusySlot::has_run_out_of_memory)
    }

    pub(super) fn pid(&self) -> Option<i32> {
        self.busy.as_ref().and(self.roots.last().copied())
    }

    pub(super) fn posture(&self) -> &Posture {
        &self.posture
    }

    /// Returns the parts that made the worker.
    pub(super) fn resources_and_zygote(&self) -> Option<(Arc<HostResources>, Arc<ZygoteLink>)> {
        let zygote = Arc::clone(&self.busy.as_ref()?.base.zygote);
        Some((Arc::clone(self.lease.resources()), zygote))
    }

    pub(super) fn lease(&self) -> &PoolLease {
        &self.lease
    }
}
