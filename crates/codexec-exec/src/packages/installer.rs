//! Runs an installer in its own sandbox, which is a guest's sandbox plus the proxy.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{FirstProcess, Launch, ProgramCommand, ZygoteLink};
use codexec_types::{Limits, OutputStream};
use tokio::net::TcpListener;
use tokio::time::{Instant, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::PackageError;
use super::installer_output::InstallerOutput;
use super::proxy::{Proxy, ProxyObservations, ProxyPolicy};
use crate::output::read_either;
use crate::pool::HostResources;
use crate::process_tree::TreeWatch;
use crate::program::{InitEvent, ProgramWorker};
use crate::slot::{Slot, Worker};
use crate::zygote::{Zygote, run_blocking};
use crate::{ExecError, slot};

/// Interval between two measurements of the process tree.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Timeouts for a killed tree to exit, and for reading its remaining output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Everything that an installer is started with.
pub(super) struct InstallerPlan {
    pub(super) launch: Launch,
    pub(super) command: ProgramCommand,
    pub(super) limits: Limits,
    pub(super) reach: ProxyPolicy,
}

/// The caller's progress callback, cancellation and deadline.
#[derive(Clone, Copy)]
pub(super) struct InstallCaller<'a> {
    pub(super) progress: &'a (dyn Fn(&str) + Sync),
    pub(super) cancel: &'a CancellationToken,
    pub(super) until: Instant,
}

/// The result of an installer whose processes are all dead.
pub(super) struct InstallerResult {
    pub(super) is_success: bool,
    pub(super) output: InstallerOutput,
    pub(super) seen: ProxyObservations,
    pub(super) ran_out_of_memory: bool,
    pub(super) is_full: bool,
    workspace: OwnedFd,
}

impl InstallerResult {
    /// Returns the path of a folder in the installer's workspace.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.workspace.as_raw_fd())).join(name)
    }
}

/// Why the installer was stopped.
enum StopReason {
    Time,
    Cancelled,
}

pub(super) async fn run(
    resources: &HostResources,
    plan: InstallerPlan,
    caller: InstallCaller<'_>,
) -> Result<InstallerResult, PackageError> {
    let InstallerPlan { launch, command, limits, reach } = plan;
    let (program, role) = (resources.settings.program.clone(), resources.settings.programs_role);
    let cgroups = resources.cgroups().await;
    let has_cgroups = cgroups.is_ok();
    let launch = if has_cgroups { launch } else { launch.without_cgroups(limits.memory_bytes) };
    resources.guard.start().map_err(ExecError::from)?;
    let (link, launch, missing) = run_blocking(move || {
        let link = ZygoteLink::start(&program, role)?;
        let missing = link.enter_rootfs(&launch)?.map_err(ExecError::Sandbox)?;
        Ok((link, launch, missing))
    })
    .await?;
    let first = Some(FirstProcess::Fetches(command));
    let zygote = Zygote { link: Arc::new(link), launch, missing, first, warm: None };
    let slot = Slot::open(&zygote, limits, cgroups).await?;
    let (mut busy, worker) = slot.occupy();
    let Worker { handles, program, roots, socket: _socket } = worker;
    let mut program = program.ok_or_else(slot::protocol_error)?;
    let proxy = Proxy::start(take_listener(&mut program)?, reach);
    let mut output = InstallerOutput::default();
    let mut watch = TreeWatch::new(roots);
    let (meter, limit_bytes) = (Arc::clone(&program.meter), limits.memory_bytes);
    let guarded = resources.guard.watch(meter, handles.shared(), limit_bytes);
    let mut looks = interval(CHECK_INTERVAL);
    let (mut used_before, mut stopped, mut status) = (None, None, None);
    while status.is_none() && stopped.is_none() {
        tokio::select! {
            (stream, text, _) = read_either(&mut program.out, &mut program.err) => {
                output.add(stream, &text, caller.progress);
            }
            event = busy.next_guest_event(&mut program.init, &mut used_before) => {
                status = Some(match event {
                    Ok(InitEvent::Ended(status)) => Some(status),
                    Ok(InitEvent::Streams(..)) | Err(_) => None,
                });
            }
            () = sleep_until(caller.until) => stopped = Some(StopReason::Time),
            () = caller.cancel.cancelled() => stopped = Some(StopReason::Cancelled),
            _ = looks.tick() => {
                if watch.measure(&program.meter).cpu > limits.cpu {
                    stopped = Some(StopReason::Time);
                }
            }
        }
    }
    handles.kill();
    // Nothing is used of an installer that was not reaped.
    timeout(EXIT_TIMEOUT, busy.wait_for_exit())
        .await
        .map_err(|_| slot::timeout_error())
        .map_err(ExecError::from)?
        .map_err(ExecError::from)?;
    let _ = timeout(OUTPUT_TIMEOUT, read_remaining_output(&mut program, &mut output, caller)).await;
    let ran_out_of_memory = busy.has_run_out_of_memory();
    match stopped {
        Some(StopReason::Time) => return Err(PackageError::TimedOut(limits.wall)),
        Some(StopReason::Cancelled) => return Err(PackageError::Cancelled),
        None if guarded.was_killed() => return Err(PackageError::Memory),
        None => {}
    }
    Ok(InstallerResult {
        is_success: status.flatten() == Some(0),
        output,
        seen: proxy.observations(),
        ran_out_of_memory,
        is_full: codexec_sandbox::is_filesystem_full(&program.workspace),
        workspace: program.workspace,
    })
}

fn take_listener(program: &mut ProgramWorker) -> Result<TcpListener, ExecError> {
    let listener =
        std::net::TcpListener::from(program.listener.take().ok_or_else(slot::protocol_error)?);
    listener.set_nonblocking(true)?;
    Ok(TcpListener::from_std(listener)?)
}

async fn read_remaining_output(
    program: &mut ProgramWorker,
    output: &mut InstallerOutput,
    caller: InstallCaller<'_>,
) {
    while !(program.out.has_ended() && program.err.has_ended()) {
        let (stream, text, _): (OutputStream, String, u64) =
            read_either(&mut program.out, &mut program.err).await;
        output.add(stream, &text, caller.progress);
    }
}
