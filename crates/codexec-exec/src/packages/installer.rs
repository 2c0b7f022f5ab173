//! Runs an installer in its own sandbox, which is a guest's sandbox plus the proxy.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{Command, First, Launch, ZygoteLink};
use codexec_types::{Limits, Stream};
use tokio::net::TcpListener;
use tokio::time::{Instant, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::PackageError;
use super::chatter::Chatter;
use super::proxy::{Proxy, Reach, Seen};
use crate::output::written;
use crate::pool::Machine;
use crate::program::{GuestNews, Home};
use crate::slot::{Slot, Worker};
use crate::watch::Watch;
use crate::zygote::{Zygote, blocking};
use crate::{ExecError, slot};

/// Interval between two measurements of the process tree.
const LOOK: Duration = Duration::from_millis(250);
/// Timeouts for a killed tree to exit, and for reading its remaining output.
const DEATH: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_secs(1);

/// Everything that an installer is started with.
pub(super) struct Plan {
    pub(super) launch: Launch,
    pub(super) command: Command,
    pub(super) limits: Limits,
    pub(super) reach: Reach,
}

/// The caller's progress callback, cancellation and deadline.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) progress: &'a (dyn Fn(&str) + Sync),
    pub(super) cancel: &'a CancellationToken,
    pub(super) until: Instant,
}

/// The result of an installer whose processes are all dead.
pub(super) struct Ran {
    pub(super) is_success: bool,
    pub(super) said: Chatter,
    pub(super) seen: Seen,
    pub(super) ran_out_of_memory: bool,
    pub(super) is_full: bool,
    workspace: OwnedFd,
}

impl Ran {
    /// Returns the path of a folder in the installer's workspace.
    pub(super) fn left(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.workspace.as_raw_fd())).join(name)
    }
}

/// Why the installer was stopped.
enum Stopped {
    Time,
    Cancelled,
}

pub(super) async fn run(
    machine: &Machine,
    plan: Plan,
    caller: Caller<'_>,
) -> Result<Ran, PackageError> {
    let Plan { launch, command, limits, reach } = plan;
    let (program, role) = (machine.settings.program.clone(), machine.settings.programs_role);
    let cgroups = machine.cgroups().await;
    let launch = match cgroups {
        Ok(_) => launch,
        Err(_) => launch.without_cgroups(limits.memory_bytes),
    };
    machine.guard.start().map_err(ExecError::from)?;
    let (link, launch, missing) = blocking(move || {
        let link = ZygoteLink::start(&program, role)?;
        let missing = link.enter(&launch)?.map_err(ExecError::Sandbox)?;
        Ok((link, launch, missing))
    })
    .await?;
    let first = Some(First::Fetches(command));
    let zygote = Zygote { link: Arc::new(link), launch, missing, first, warm: None };
    let slot = Slot::open(&zygote, limits, cgroups).await?;
    let (mut busy, worker) = slot.occupy();
    let Worker { handles, home, roots, socket: _socket } = worker;
    let mut home = home.ok_or_else(slot::babble)?;
    let proxy = Proxy::start(listener(&mut home)?, reach);
    let mut said = Chatter::default();
    let mut watch = Watch::new(roots);
    let (meter, limit_bytes) = (Arc::clone(&home.meter), limits.memory_bytes);
    let guarded = machine.guard.watch(meter, handles.worker(), limit_bytes);
    let mut looks = interval(LOOK);
    let (mut used_before, mut stopped, mut status) = (None, None, None);
    while status.is_none() && stopped.is_none() {
        tokio::select! {
            (stream, text, _) = written(&mut home.out, &mut home.err) => {
                said.add(stream, &text, caller.progress);
            }
            news = busy.guest_news(&mut home.init, &mut used_before) => status = Some(match news {
                Ok(GuestNews::Ended(status)) => Some(status),
                Ok(GuestNews::Streams(..)) | Err(_) => None,
            }),
            () = sleep_until(caller.until) => stopped = Some(Stopped::Time),
            () = caller.cancel.cancelled() => stopped = Some(Stopped::Cancelled),
            _ = looks.tick() => {
                if watch.used(&home.meter).cpu > limits.cpu {
                    stopped = Some(Stopped::Time);
                }
            }
        }
    }
    handles.kill();
    // Nothing is used of an installer that was not reaped.
    timeout(DEATH, busy.gone())
        .await
        .map_err(|_| slot::timed_out())
        .map_err(ExecError::from)?
        .map_err(ExecError::from)?;
    let _ = timeout(REST, hear_the_rest(&mut home, &mut said, caller)).await;
    let ran_out_of_memory = busy.ran_out_of_memory();
    match stopped {
        Some(Stopped::Time) => return Err(PackageError::TimedOut(limits.wall)),
        Some(Stopped::Cancelled) => return Err(PackageError::Cancelled),
        None if guarded.was_over() => return Err(PackageError::Memory),
        None => {}
    }
    Ok(Ran {
        is_success: status.flatten() == Some(0),
        said,
        seen: proxy.seen(),
        ran_out_of_memory,
        is_full: codexec_sandbox::is_full(&home.workspace),
        workspace: home.workspace,
    })
}

fn listener(home: &mut Home) -> Result<TcpListener, ExecError> {
    let listener = std::net::TcpListener::from(home.listener.take().ok_or_else(slot::babble)?);
    listener.set_nonblocking(true)?;
    Ok(TcpListener::from_std(listener)?)
}

async fn hear_the_rest(home: &mut Home, said: &mut Chatter, caller: Caller<'_>) {
    while !(home.out.is_over() && home.err.is_over()) {
        let (stream, text, _): (Stream, String, u64) = written(&mut home.out, &mut home.err).await;
        said.add(stream, &text, caller.progress);
    }
}
