//! Starts a guest's first process and serves it until it ends.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use codexec_types::{FRAME_HEADER_BYTES, ToGuest, WorkerJob, frame_length};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, setsid};

use super::shell;
use super::signals::{SignalEvent, Signals};
use crate::broker::{self, Broker};
use crate::control::{self, FirstProcess, FromInit, ProgramCommand};
use crate::exec::PreparedCommand;
use crate::rootfs::{BOX, WORK};
use crate::{ruleset, sys};

/// The restrictions that apply only to the guest. Init itself must be able to signal the guest,
/// and to pass descriptors whatever other guests do.
#[derive(Clone, Copy)]
pub(super) struct GuestLimits<'a> {
    pub(super) rules: Option<&'a OwnedFd>,
    pub(super) open_files: u64,
}

/// The descriptors that a guest's first process inherits, besides stdout and stderr.
#[derive(Clone, Copy)]
pub(super) enum InheritedFds<'a> {
    Channel(&'a UnixStream),
    /// `None`: the stdin of this process.
    Input(Option<&'a File>),
    /// For the shell of a session: stdin with its commands, the socket for reports on cells, the
    /// socket on which the shell dumps its state, and `/dev/null` for its own output. Each cell
    /// has its own output.
    Cells {
        lines: &'a OwnedFd,
        reports: &'a OwnedFd,
        state: &'a OwnedFd,
        null: &'a OwnedFd,
    },
}

/// The guest's socket, in a guest that starts at once.
const CHANNEL_FD: i32 = 3;

/// The shell's descriptors for reports and state: numbers that scripts do not use.
const REPORTS_FD: i32 = 98;
const STATE_FD: i32 = 99;

/// Runs the guest until its first process has ended, and reports that to the host. Never returns
/// for a guest that enters. `cells` is the folder for the cells of a shell's session.
pub(super) fn run(
    first: FirstProcess,
    limits: GuestLimits<'_>,
    control: &OwnedFd,
    channel: UnixStream,
    cells: Option<OwnedFd>,
) -> io::Result<()> {
    let signals = Signals::new()?;
    let status = match first {
        FirstProcess::Enters => {
            drop(channel);
            loop {
                signals.next(None)?;
            }
        }
        FirstProcess::Started(command) | FirstProcess::Fetches(command) => {
            let guest = spawn(&command, limits, InheritedFds::Channel(&channel))?;
            drop(channel);
            loop {
                match signals.next(Some(guest))? {
                    SignalEvent::Ended(status) => break status,
                    SignalEvent::Interrupt => interrupt(guest),
                    SignalEvent::Other => {}
                }
            }
        }
        FirstProcess::Scripted(mut command) => {
            let job = read_job(&channel)?;
            // The user's directory may have been mounted there while this process waited.
            chdir(WORK)?;
            if has_user_directory()? {
                // Keeps `__pycache__` out of the user's directory.
                let name = "PYTHONDONTWRITEBYTECODE".to_owned();
                command.environment.push((name, "1".to_owned()));
            }
            if job.is_session {
                let folder = cells.ok_or(io::ErrorKind::NotFound)?;
                let session =
                    shell::ShellSession::new(command, limits, &signals, control, folder, channel);
                session?.serve()?
            } else {
                run_script(command, &job, limits, &signals, channel)?
            }
        }
    };
    control::send(control.as_fd(), &FromInit::Ended { status }, &[])
}

fn has_user_directory() -> io::Result<bool> {
    Ok(fs::metadata(WORK)?.dev() != fs::metadata(BOX)?.dev())
}

/// Sends SIGINT to a guest that handles it. Without a handler the guest would die; such a guest
/// reads the host's `Interrupt` from its socket once it is ready.
fn interrupt(guest: i32) {
    if has_handler(guest, Signal::SIGINT as i32) {
        // Fails if the guest has ended.
        let _ = kill(Pid::from_raw(guest), Signal::SIGINT);
    }
}

/// Returns true if a process has a handler for this signal.
pub(super) fn has_handler(process: i32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    caught & (1 << (signal - 1)) != 0
}

fn run_script(
    mut command: ProgramCommand,
    job: &WorkerJob,
    limits: GuestLimits<'_>,
    signals: &Signals,
    channel: UnixStream,
) -> io::Result<i32> {
    let listener = broker::bind_listener()?;
    let (script, input) = write_files(job)?;
    command.arguments.push(script);
    command.arguments.extend(job.args.iter().cloned());
    let guest = spawn(&command, limits, InheritedFds::Input(input.as_ref()))?;
    let mut broker = Broker::new(channel, listener);
    loop {
        broker.relay(&[signals.as_fd()], None)?;
        if let SignalEvent::Ended(status) = signals.next(Some(guest))? {
            broker.drain()?;
            return Ok(status);
        }
    }
}

fn read_job(mut channel: &UnixStream) -> io::Result<WorkerJob> {
    let mut header = [0; FRAME_HEADER_BYTES];
    channel.read_exact(&mut header)?;
    let length = frame_length(header).map_err(io::Error::other)?;
    let mut body = vec![0; length];
    channel.read_exact(&mut body)?;
    match ToGuest::decode(&body).map_err(io::Error::other)? {
        ToGuest::Start(job) => Ok(job),
        ToGuest::Answer(_) | ToGuest::Cell(_) | ToGuest::Interrupt => {
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

/// Writes the code and the input to files, so that no text of the caller becomes an option or an
/// environment variable. Returns the script's path and the opened input, if it replaces stdin.
fn write_files(job: &WorkerJob) -> io::Result<(String, Option<File>)> {
    let (script, input) = (Path::new(BOX).join("main"), Path::new(BOX).join("input"));
    fs::write(&script, &job.code)?;
    if job.has_stdin {
        return Ok((script.display().to_string(), None));
    }
    fs::write(&input, if job.input.text() == "null" { "" } else { job.input.text() })?;
    let opened = File::open(&input)?;
    fs::remove_file(&input)?;
    Ok((script.display().to_string(), Some(opened)))
}

pub(super) fn spawn(
    command: &ProgramCommand,
    limits: GuestLimits<'_>,
    inherited: InheritedFds<'_>,
) -> io::Result<i32> {
    let prepared = PreparedCommand::new(command)?;
    if let Some(pid) = sys::fork()? {
        return Ok(pid);
    }
    let exec_guest = || -> io::Result<Infallible> {
        setsid()?;
        SigSet::empty().thread_set_mask()?;
        // Rust's runtime ignores SIGPIPE.
        sys::default_signal(Signal::SIGPIPE)?;
        // If memory runs out, the OOM killer takes the guest, not init. Without /proc, it takes
        // the largest process.
        let _ = fs::write("/proc/self/oom_score_adj", "1000");
        if let Some(rules) = limits.rules {
            ruleset::restrict(rules)?;
        }
        // All other descriptors are close-on-exec.
        match inherited {
            InheritedFds::Channel(channel) => {
                sys::dup_to(channel.as_fd().try_clone_to_owned()?, CHANNEL_FD)?;
            }
            InheritedFds::Input(Some(input)) => dup2_stdin(input.as_fd())?,
            InheritedFds::Input(None) => {}
            InheritedFds::Cells { lines, reports, state, null } => {
                sys::dup_to(reports.try_clone()?, REPORTS_FD)?;
                sys::dup_to(state.try_clone()?, STATE_FD)?;
                dup2_stdin(lines)?;
                dup2_stdout(null)?;
                dup2_stderr(null)?;
            }
        }
        sys::lower_limit(libc::RLIMIT_NOFILE, limits.open_files)?;
        prepared.run()
    };
    let _ = exec_guest();
    sys::exit_now(127)
}
