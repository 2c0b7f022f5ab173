//! A small process that outlives the host by a moment. The warden knows the supervisors of the
//! started servers, and tells them to stop when the host dies without a shutdown, as after `kill
//! -9`.

use std::{
    collections::HashSet,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};

use crate::supervisor::STOP_SIGNAL;

/// How long supervisors may take to stop their servers.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The host's handle to the warden process, which is spawned with the first server. Cheap to clone.
///
/// THREAT[UP-3]: without it, a server that ignores the end of its stdin would stay behind forever.
#[derive(Clone, Debug)]
pub struct Warden(Arc<WardenProcess>);

#[derive(Debug)]
struct WardenProcess {
    /// Our own binary, and the arguments that make it the warden and a supervisor.
    program: Option<(PathBuf, &'static str, &'static str)>,
    process: Mutex<Option<Child>>,
}

impl Warden {
    pub fn new(program: PathBuf, role: &'static str, supervisor: &'static str) -> Warden {
        let program = Some((program, role, supervisor));
        Warden(Arc::new(WardenProcess { program, process: Mutex::default() }))
    }

    /// A handle without a warden, where our own binary is not available. Servers are then stopped
    /// only by a living host, and processes they start in other sessions are not stopped at all.
    pub fn none() -> Warden {
        Warden(Arc::new(WardenProcess { program: None, process: Mutex::default() }))
    }

    /// Returns our own binary and the argument that makes it a server's supervisor.
    pub(crate) fn supervisor(&self) -> Option<(&PathBuf, &'static str)> {
        self.0.program.as_ref().map(|(program, _, supervisor)| (program, *supervisor))
    }

    pub(crate) fn guard(&self, group: i32) {
        self.send_line(&format!("+{group}\n"));
    }

    pub(crate) fn release(&self, group: i32) {
        self.send_line(&format!("-{group}\n"));
    }

    fn send_line(&self, line: &str) {
        let Some((program, role, _)) = &self.0.program else { return };
        let mut process = self.0.process.lock().unwrap_or_else(PoisonError::into_inner);
        if process.is_none() {
            match spawn_warden(program, role) {
                Ok(started) => *process = Some(started),
                Err(error) => tracing::warn!(%error, "the warden did not start"),
            }
        }
        let stdin = process.as_mut().and_then(|process| process.stdin.as_mut());
        if stdin.is_some_and(|stdin| stdin.write_all(line.as_bytes()).is_err()) {
            // The warden was killed; the next server spawns a new one.
            *process = None;
        }
    }
}

impl Drop for WardenProcess {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = process {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}

fn spawn_warden(program: &PathBuf, role: &str) -> io::Result<Child> {
    #[expect(clippy::disallowed_methods, reason = "the servers' warden is started beside them")]
    let mut command = Command::new(program);
    // A process group of its own, so that Ctrl-C in our terminal does not end it.
    command.arg(role).env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Runs the warden process: reads process groups from `lines` until they end, then kills the rest.
pub fn serve_warden(lines: impl io::BufRead) {
    let mut groups = HashSet::new();
    for line in lines.lines().map_while(Result::ok) {
        match (line.strip_prefix('+'), line.strip_prefix('-')) {
            (Some(group), _) => groups.extend(group.parse::<i32>().ok().filter(|g| *g > 1)),
            (None, Some(group)) => {
                groups.retain(|known| known.to_string() != group);
            }
            (None, None) => {}
        }
    }
    stop_all(groups.into_iter().map(Pid::from_raw).collect());
}

/// Tells the supervisors to stop, then kills the process groups of those that do not.
#[expect(clippy::disallowed_methods, reason = "the end of a process that is not our child")]
fn stop_all(mut supervisors: Vec<Pid>) {
    for supervisor in &supervisors {
        // An error means that the process has already ended.
        let _ = kill(*supervisor, STOP_SIGNAL);
    }
    let until = Instant::now() + STOP_TIMEOUT;
    while !supervisors.is_empty() && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
        supervisors.retain(|supervisor| killpg(*supervisor, None).is_ok());
    }
    for supervisor in supervisors {
        let _ = killpg(supervisor, Signal::SIGKILL);
    }
}
