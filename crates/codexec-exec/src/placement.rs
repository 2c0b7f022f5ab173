//! Chooses the body of a guest, and the pool that the body comes from.

use std::path::PathBuf;
use std::sync::Arc;

use codexec_types::{Admitted, Json, WorkerJob, WorkingDir};
use tokio::sync::OwnedSemaphorePermit;

use crate::package_mounter::{PACKAGES, mount_read_only};
use crate::pool::Pool;
use crate::run::WaitingBody;
use crate::slot::{Slot, WorkerOptions, WorkerPurpose};
use crate::stdin::GuestStdin;
use crate::user_dir::UserDir;
use crate::worker_kind::WorkerKind;
use crate::{ExecError, Run, Workers};

/// The use that a guest is started for.
pub(crate) enum GuestPurpose {
    /// An execution of the request's code.
    Execution { permit: OwnedSemaphorePermit, stdin: Option<GuestStdin> },
    /// A session, which gets its code later. `packages` is a directory that it sees read-only.
    Session { packages: Option<PathBuf> },
}

impl Workers {
    /// Starts a guest. This is the one function that chooses its body: a worker of the kind that
    /// its language needs.
    pub(crate) async fn place(
        &self,
        admitted: &Admitted,
        servers: Vec<String>,
        purpose: GuestPurpose,
    ) -> Result<Run, ExecError> {
        let mut job = make_job(admitted, servers, &purpose);
        let waiting = self.place_in_worker(admitted, &mut job, purpose).await?;
        Ok(Run::new(job, admitted.limits(), waiting))
    }

    async fn place_in_worker(
        &self,
        admitted: &Admitted,
        job: &mut WorkerJob,
        purpose: GuestPurpose,
    ) -> Result<WaitingBody, ExecError> {
        let kind = WorkerKind::of(admitted.language());
        let pool = self.0.pools.of(kind);
        match purpose {
            GuestPurpose::Execution { permit, stdin } => {
                pool.note_request(admitted.working_dir().is_some());
                let slot = pool.take_slot().await?;
                let (mut slot, dir) = self.mount_working_dir(slot, admitted.working_dir()).await?;
                job.has_stdin = stdin.is_some_and(|stdin| slot.feed_stdin(stdin));
                Ok(WaitingBody::in_slot(slot, dir, pool.lease(Some(permit)), job))
            }
            GuestPurpose::Session { packages } => {
                let packages = packages.filter(|_| kind != WorkerKind::Engine);
                let slot = self.take_session_slot(pool, packages).await?;
                let (slot, dir) = self.mount_working_dir(slot, admitted.working_dir()).await?;
                let waiting = WaitingBody::in_slot(slot, dir, pool.lease(None), job);
                // The session keeps its slot.
                pool.warm_in_background();
                Ok(waiting)
            }
        }
    }

    /// Takes a slot with a new worker, made for a session.
    async fn take_session_slot(
        &self,
        pool: &Arc<Pool>,
        packages: Option<PathBuf>,
    ) -> Result<Slot, ExecError> {
        let slot = pool.take_slot_for_session().await?;
        let mut mounts = Vec::new();
        if let Some(packages) = packages {
            let mount = mount_read_only(&self.0.resources, packages).await?;
            mounts.push((PathBuf::from(PACKAGES), mount));
        }
        slot.replace_worker(WorkerOptions { purpose: WorkerPurpose::Session, mounts }).await
    }

    /// Mounts the requested working directory, if any, in a waiting worker. The worker's keeper
    /// prepares everything else while the directory itself is mounted.
    async fn mount_working_dir(
        &self,
        mut slot: Slot,
        wanted: Option<&WorkingDir>,
    ) -> Result<(Slot, Option<UserDir>), ExecError> {
        let Some(wanted) = wanted else { return Ok((slot, None)) };
        let resources = &self.0.resources;
        let mounter = resources.mounter().await?;
        slot.prepare_stage(resources.layer_limits())?;
        let Some(overlay_sink) = slot.take_overlay_sink() else { return Ok((slot, None)) };
        let overlay = UserDir::overlay(wanted, resources);
        let (dir, slot) = tokio::join!(
            UserDir::open(wanted, resources, mounter, overlay_sink),
            slot.mount(overlay)
        );
        let dir = dir?;
        Ok((slot?, Some(dir)))
    }
}

/// Returns the job of a guest. A session's job has no code.
fn make_job(admitted: &Admitted, servers: Vec<String>, purpose: &GuestPurpose) -> WorkerJob {
    let is_session = match purpose {
        GuestPurpose::Execution { .. } => false,
        GuestPurpose::Session { .. } => true,
    };
    WorkerJob {
        language: admitted.language(),
        code: if is_session { String::new() } else { admitted.code().to_owned() },
        input: if is_session { Json::null() } else { admitted.input().clone() },
        args: if is_session { Vec::new() } else { admitted.args().to_vec() },
        is_session,
        has_stdin: false,
        servers,
        memory_bytes: admitted.limits().memory_bytes,
    }
}
