//! A process above each server. As a subreaper, it becomes the parent of every descendant the
//! server leaves behind, in whichever session, and kills all of them when the server ends.
//!
//! THREAT[UP-20]: only descendants are ever signalled, because the kernel names them.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write as _},
    process::Command,
};

use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{SigSet, Signal, kill, raise},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout},
};

/// Tells a supervisor to kill its server and all of its descendants.
pub(crate) const STOP_SIGNAL: Signal = Signal::SIGUSR1;

/// The exit code that shells use for a program that cannot be started.
const NOT_STARTED: i32 = 127;

/// Runs a program to its end, and kills what it leaves behind. Returns the exit code; if the
/// program was killed, this process dies by the same signal.
///
/// Only for a single-threaded process.
pub fn supervise(mut command: impl Iterator<Item = OsString>) -> i32 {
    let Some(program) = command.next() else { return NOT_STARTED };
    match spawn_server(&program, command) {
        Ok((server, signals)) => exit_like(supervise_server(server, &signals)),
        Err(error) => {
            let program = program.to_string_lossy();
            let _ = writeln!(io::stderr(), "{program} could not be started: {error}");
            NOT_STARTED
        }
    }
}

fn spawn_server(
    program: &OsString,
    arguments: impl Iterator<Item = OsString>,
) -> io::Result<(Pid, SigSet)> {
    let mut signals = SigSet::empty();
    // The server gets signals to the process group itself.
    for signal in [Signal::SIGCHLD, STOP_SIGNAL, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block()?;
    prctl::set_child_subreaper(true)?;
    #[expect(clippy::disallowed_methods, reason = "the server, below its supervisor")]
    let child = Command::new(program).args(arguments).spawn()?;
    // Holding the server's pipes here would hide that the server closed them.
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok((Pid::from_raw(i32::try_from(child.id()).unwrap_or(-1)), signals))
}

/// Waits until the server exits or must be stopped, then kills and reaps all descendants.
fn supervise_server(server: Pid, signals: &SigSet) -> Option<WaitStatus> {
    let mut ended = None;
    while ended.is_none() {
        match signals.wait() {
            Ok(Signal::SIGCHLD) => {
                while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                    if status == WaitStatus::StillAlive {
                        break;
                    }
                    ended = ended.or(if_server(status, server));
                }
            }
            Ok(STOP_SIGNAL) | Err(_) => break,
            Ok(_) => {}
        }
    }
    loop {
        for child in list_children() {
            let _ = kill(child, Signal::SIGKILL);
        }
        match waitpid(None, None) {
            Ok(status) => ended = ended.or(if_server(status, server)),
            Err(Errno::EINTR) => {}
            Err(_) => return ended,
        }
    }
}

fn if_server(status: WaitStatus, server: Pid) -> Option<WaitStatus> {
    (status.pid() == Some(server)).then_some(status)
}

fn list_children() -> Vec<Pid> {
    let text = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let pids = text.split_whitespace().filter_map(|pid| pid.parse().ok());
    pids.map(Pid::from_raw).collect()
}

/// Exits as the server did, so that the parent sees how the server ended.
fn exit_like(ended: Option<WaitStatus>) -> i32 {
    match ended {
        Some(WaitStatus::Exited(_, code)) => code,
        Some(WaitStatus::Signaled(_, signal, _)) => {
            // The server's own core, if any, has been written.
            let _ = prctl::set_dumpable(false);
            let _ = SigSet::all().thread_unblock();
            let _ = raise(signal);
            128 + signal as i32
        }
        Some(_) | None => NOT_STARTED,
    }
}
