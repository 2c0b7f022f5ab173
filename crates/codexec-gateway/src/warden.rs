//! A small process that outlives ours by a moment. The warden knows the supervisors of the servers
//! that we started, and tells them to end their servers when we are gone without a word, as after
//! `kill -9`.

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

use crate::supervisor::END;

/// How long supervisors may take to end their servers.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// The host's hold on the warden, which is started with the first server. Cheap to clone.
///
/// THREAT[UP-3]: a server that ignores the end of its input would else stay behind for ever.
#[derive(Clone, Debug)]
pub struct Warden(Arc<Post>);

#[derive(Debug)]
struct Post {
    /// Our own binary, and the arguments that make it the warden and a supervisor.
    program: Option<(PathBuf, &'static str, &'static str)>,
    process: Mutex<Option<Child>>,
}

impl Warden {
    pub fn new(program: PathBuf, role: &'static str, supervisor: &'static str) -> Warden {
        let program = Some((program, role, supervisor));
        Warden(Arc::new(Post { program, process: Mutex::default() }))
    }

    /// For where there is no binary of ours: servers are then ended only by a host that lives, and
    /// what they start in other sessions is not.
    pub fn none() -> Warden {
        Warden(Arc::new(Post { program: None, process: Mutex::default() }))
    }

    /// Returns our own binary and the argument that makes it a server's supervisor.
    pub(crate) fn supervisor(&self) -> Option<(&PathBuf, &'static str)> {
        self.0.program.as_ref().map(|(program, _, supervisor)| (program, *supervisor))
    }

    pub(crate) fn guard(&self, group: i32) {
        self.tell(&format!("+{group}\n"));
    }

    pub(crate) fn release(&self, group: i32) {
        self.tell(&format!("-{group}\n"));
    }

    fn tell(&self, line: &str) {
        let Some((program, role, _)) = &self.0.program else { return };
        let mut process = self.0.process.lock().unwrap_or_else(PoisonError::into_inner);
        if process.is_none() {
            match start(program, role) {
                Ok(started) => *process = Some(started),
                Err(error) => tracing::warn!(%error, "the warden did not start"),
            }
        }
        let stdin = process.as_mut().and_then(|process| process.stdin.as_mut());
        if stdin.is_some_and(|stdin| stdin.write_all(line.as_bytes()).is_err()) {
            // Somebody has killed it; the next server gets a new one.
            *process = None;
        }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = process {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}

fn start(program: &PathBuf, role: &str) -> io::Result<Child> {
    #[expect(clippy::disallowed_methods, reason = "the servers' warden is started beside them")]
    let mut command = Command::new(program);
    // In a group of its own: what ends us from a terminal does not end it.
    command.arg(role).env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// The warden's own life: learns groups from `lines` until they end, then kills what is left.
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
    end(groups.into_iter().map(Pid::from_raw).collect());
}

/// Has the supervisors end everything, and kills the groups of those that do not.
#[expect(clippy::disallowed_methods, reason = "the end of a process that is not our child")]
fn end(mut supervisors: Vec<Pid>) {
    for supervisor in &supervisors {
        // Nobody left to get it is what we want anyway.
        let _ = kill(*supervisor, END);
    }
    let until = Instant::now() + PATIENCE;
    while !supervisors.is_empty() && Instant::now() < until {
        std::thread::sleep(PAUSE);
        supervisors.retain(|supervisor| killpg(*supervisor, None).is_ok());
    }
    for supervisor in supervisors {
        let _ = killpg(supervisor, Signal::SIGKILL);
    }
}
