//! Opens sessions: workers that are kept between cells.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use codexec_sandbox::MountRequest;
use codexec_types::{Admitted, Json, WorkerJob};

use crate::engine::Engine;
use crate::pool::HostResources;
use crate::run::WaitingBody;
use crate::slot::{WorkerOptions, WorkerPurpose};
use crate::zygote::run_blocking;
use crate::{ExecError, Run, Workers};

/// The guest's path of the packages of its session or execution.
pub(crate) const PACKAGES: &str = "/box/packages";

impl Workers {
    /// Opens a session in the language and directory of this request. The request's code is not
    /// run: cells are sent with [`Run::send`]. `servers` are the names that the guest may see;
    /// `packages` is a directory that it sees read-only, including files added later.
    ///
    /// Sessions need no permit; the caller bounds their number.
    pub async fn open_session(
        &self,
        admitted: &Admitted,
        servers: Vec<String>,
        packages: Option<PathBuf>,
    ) -> Result<Run, ExecError> {
        let engine = Engine::of(admitted.language());
        let pool = self.0.pool(engine);
        let slot = pool.take_slot().await?;
        let mut mounts = Vec::new();
        if let (Some(packages), false) = (packages, engine == Engine::Js) {
            let mount = mount_read_only(&self.0.resources, packages).await?;
            mounts.push((PathBuf::from(PACKAGES), mount));
        }
        let slot =
            slot.replace_worker(WorkerOptions { purpose: WorkerPurpose::Session, mounts }).await?;
        let (slot, dir) = match admitted.working_dir() {
            Some(wanted) => self.mount_working_dir(slot, wanted).await?,
            None => (slot, None),
        };
        let limits = admitted.limits();
        let job = WorkerJob {
            language: admitted.language(),
            code: String::new(),
            input: Json::null(),
            args: Vec::new(),
            is_session: true,
            has_stdin: false,
            servers,
            memory_bytes: limits.memory_bytes,
        };
        let waiting = WaitingBody::in_slot(slot, dir, pool.lease(None), &job);
        let run = Run::new(job, limits, waiting);
        // The session keeps its slot, so the pool is refilled. Not awaited: every step has a
        // timeout.
        let (pool, resources) = (Arc::clone(pool), Arc::clone(&self.0.resources));
        tokio::spawn(async move {
            if let Err(error) = pool.warm().await
                && !resources.is_closing()
            {
                tracing::warn!(%error, "cannot refill the worker pool");
            }
        });
        Ok(run)
    }
}

/// Returns a read-only mount of one of our own directories.
pub(crate) async fn mount_read_only(
    resources: &HostResources,
    path: PathBuf,
) -> Result<OwnedFd, ExecError> {
    let mounter = resources.mounter().await?;
    run_blocking(move || {
        let found = fs::metadata(&path)?;
        let owner = codexec_sandbox::is_root().then_some((found.uid(), found.gid()));
        let (device, inode) = (found.dev(), found.ino());
        Ok(mounter.mount(&MountRequest { path, device, inode, owner })?)
    })
    .await
}
