//! A small process that outlives ours by a moment. It knows the process groups of the servers we
//! started, and ends them when we are gone without a word, as after `kill -9`.

use std::{
    collections::HashSet,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

/// The host's hold on the warden, which is started with the first server. Cheap to clone.
///
/// THREAT[UP-3]: a server that ignores the end of its input would else stay behind for ever.
#[derive(Clone, Debug)]
pub struct Warden(Arc<Post>);

#[derive(Debug)]
struct Post {
    /// Our own binary, and the argument that makes it the warden.
    program: Option<(PathBuf, &'static str)>,
    process: Mutex<Option<Child>>,
}

impl Warden {
    pub fn new(program: PathBuf, role: &'static str) -> Warden {
        Warden(Arc::new(Post { program: Some((program, role)), process: Mutex::default() }))
    }

    /// For where there is no binary of ours: servers are then ended only by a host that lives.
    pub fn none() -> Warden {
        Warden(Arc::new(Post { program: None, process: Mutex::default() }))
    }

    pub(crate) fn guard(&self, group: i32) {
        self.tell(&format!("+{group}\n"));
    }

    pub(crate) fn release(&self, group: i32) {
        self.tell(&format!("-{group}\n"));
    }

    fn tell(&self, line: &str) {
        let Some((program, role)) = &self.0.program else { return };
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
    for group in groups {
        // Nobody left to get it is what we want anyway.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}
