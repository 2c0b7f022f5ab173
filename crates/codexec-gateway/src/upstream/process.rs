//! A server's process and its descendants: below one supervisor, stopped together.

use std::{
    collections::VecDeque,
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use codexec_types::clean_text;
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::{AccessFlags, Pid, access},
};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    log::{self, ServerLog},
    start::StartPlan,
};
use crate::{GatewaySettings, Warden, supervisor::STOP_SIGNAL};

/// How much of a server's stderr is kept in memory.
const STDERR_BYTES: usize = 8 << 10;
/// How much of that is quoted in an error.
const QUOTED_STDERR_BYTES: usize = 500;
/// How long a server may take to exit after its stdin is closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);

/// A server's process, shared by all parts that watch it. Dropping the [`ProcessGuard`] kills it.
pub(crate) struct ServerProcess {
    /// The supervisor's pid, which is also the group's; without a supervisor, the server's own.
    pid: i32,
    has_supervisor: bool,
    is_reaped: AtomicBool,
    status: OnceLock<io::Result<ExitStatus>>,
    /// Why we killed it.
    kill_reason: OnceLock<&'static str>,
    stderr: Mutex<VecDeque<u8>>,
    stop: CancellationToken,
    /// Cancelled once the process was reaped and its group killed.
    ended: CancellationToken,
    stderr_drained: CancellationToken,
}

/// A guard that kills the process when dropped.
pub(crate) struct ProcessGuard(pub(super) Arc<ServerProcess>);

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        self.0.kill();
    }
}

pub(super) struct SpawnedServer {
    pub(super) guard: ProcessGuard,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
}

pub(super) fn spawn(
    plan: &StartPlan,
    log: Option<ServerLog>,
    settings: &GatewaySettings,
) -> io::Result<SpawnedServer> {
    let mut command = command(plan, settings)?;
    command
        .args(&plan.args)
        .env_clear()
        .envs(&plan.env)
        .current_dir(&plan.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) =
        (pid, child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("the process ended while it was started"));
    };
    settings.warden.guard(pid);
    let process = Arc::new(ServerProcess {
        pid,
        has_supervisor: settings.warden.supervisor().is_some(),
        is_reaped: AtomicBool::new(false),
        status: OnceLock::new(),
        kill_reason: OnceLock::new(),
        stderr: Mutex::new(VecDeque::with_capacity(STDERR_BYTES)),
        stop: CancellationToken::new(),
        ended: CancellationToken::new(),
        stderr_drained: CancellationToken::new(),
    });
    tokio::spawn(reap(child, process.clone(), settings.warden.clone()));
    tokio::spawn(drain_stderr(stderr, process.clone(), log));
    Ok(SpawnedServer { guard: ProcessGuard(process), stdin, stdout })
}

/// Returns the command to spawn: the program, below a supervisor if our binary is available.
fn command(plan: &StartPlan, settings: &GatewaySettings) -> io::Result<Command> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the file that starts the user's servers"
    )]
    let new = |program: &Path| Command::new(program);
    let Some((supervisor, role)) = settings.warden.supervisor() else {
        return Ok(new(&plan.program));
    };
    // Fails here as spawning the program would, because a supervisor cannot report the error.
    access(&plan.program, AccessFlags::X_OK)?;
    let mut command = new(supervisor);
    command.arg(role).arg(&plan.program);
    Ok(command)
}

impl ServerProcess {
    pub(crate) fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Kills the server and all of its descendants, now.
    ///
    /// THREAT[UP-3]: the supervisor knows descendants that are outside the process group.
    pub(crate) fn kill(&self) {
        if !self.has_supervisor {
            self.signal(Signal::SIGKILL);
        } else if !self.is_reaped.load(Ordering::Acquire) {
            let _ = kill(Pid::from_raw(self.pid), STOP_SIGNAL);
        }
    }

    /// Stops the process, by force if needed. Its stdin must be closed by now or soon.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.ended.cancelled().await;
    }

    pub(super) fn kill_because(&self, why: &'static str) {
        let _ = self.kill_reason.set(why);
        self.kill();
    }

    pub(super) fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Returns when the process has ended and its group is killed.
    pub(super) async fn wait_ended(&self) {
        self.ended.cancelled().await;
    }

    /// Describes the exit status and the end of stderr for an error. Waits a moment for both to
    /// arrive.
    pub(super) async fn describe_end(&self) -> String {
        let both = async {
            self.ended.cancelled().await;
            self.stderr_drained.cancelled().await;
        };
        let _ = timeout(Duration::from_millis(80), both).await;
        let status = match (self.kill_reason.get(), self.status.get()) {
            (Some(why), _) => (*why).to_owned(),
            (None, Some(Ok(status))) => status.to_string(),
            (None, Some(Err(_)) | None) => "it closed its stdout".to_owned(),
        };
        format!("{status}{}", self.stderr_tail())
    }

    /// Returns the end of stderr for an error message, or an empty string.
    pub(super) fn stderr_tail(&self) -> String {
        let ring = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = ring.iter().copied().collect();
        drop(ring);
        let text = clean_text(&String::from_utf8_lossy(&bytes));
        match text.trim() {
            "" => String::new(),
            text => format!("; stderr: {}", cut_text_front(text, QUOTED_STDERR_BYTES)),
        }
    }

    fn signal(&self, signal: Signal) {
        if !self.is_reaped.load(Ordering::Acquire) {
            // An error means that the group has already ended.
            let _ = killpg(Pid::from_raw(self.pid), signal);
        }
    }

    fn append_stderr(&self, bytes: &[u8]) {
        let bytes = bytes.get(bytes.len().saturating_sub(STDERR_BYTES)..).unwrap_or_default();
        let mut ring = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let excess = (ring.len() + bytes.len()).saturating_sub(STDERR_BYTES).min(ring.len());
        ring.drain(..excess);
        ring.extend(bytes);
    }
}

/// Reaps the process, and kills its group: a grandchild that holds our pipes would otherwise make a
/// dead server look alive.
async fn reap(mut child: Child, process: Arc<ServerProcess>, warden: Warden) {
    let status = tokio::select! {
        status = child.wait() => status,
        () = process.stop.cancelled() => stop_gracefully(&mut child, &process).await,
    };
    // Includes the group of a supervisor that was killed.
    process.signal(Signal::SIGKILL);
    process.is_reaped.store(true, Ordering::Release);
    warden.release(process.pid);
    let _ = process.status.set(status);
    process.ended.cancel();
}

async fn stop_gracefully(child: &mut Child, process: &ServerProcess) -> io::Result<ExitStatus> {
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status;
    }
    process.signal(Signal::SIGTERM);
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status;
    }
    process.kill();
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status;
    }
    process.signal(Signal::SIGKILL);
    child.wait().await
}

async fn drain_stderr(
    mut stderr: ChildStderr,
    process: Arc<ServerProcess>,
    mut log: Option<ServerLog>,
) {
    let mut chunk = vec![0; STDERR_BYTES];
    loop {
        let read = tokio::select! {
            biased;
            read = stderr.read(&mut chunk) => read,
            () = process.ended.cancelled() => break,
        };
        match read {
            Ok(0) | Err(_) => break,
            Ok(length) => {
                let bytes = chunk.get(..length).unwrap_or_default();
                process.append_stderr(bytes);
                log = log::append(log, bytes).await;
            }
        }
    }
    process.stderr_drained.cancel();
}

/// Keeps the last `bytes` bytes of a text, and marks the cut.
fn cut_text_front(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len() - bytes);
    format!("…{}", text.get(start..).unwrap_or_default())
}
