//! Starting a guest's first process, and staying with it to its end.

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
use super::signals::{Signalled, Signals};
use crate::broker::{self, Broker};
use crate::control::{self, Command, First, FromInit};
use crate::exec::Exec;
use crate::tree::{BOX, WORK};
use crate::{ruleset, sys};

/// What is raised only around the guest itself: we have to signal it, and to pass descriptors
/// whatever other guests do.
#[derive(Clone, Copy)]
pub(super) struct Walls<'a> {
    pub(super) rules: Option<&'a OwnedFd>,
    pub(super) open_files: u64,
}

/// What a guest's first process gets from us beside its output.
#[derive(Clone, Copy)]
pub(super) enum Inherited<'a> {
    Channel(&'a UnixStream),
    Input(&'a File),
    /// For a shell that takes cells: its lines, where it says how they ended, where it leaves what
    /// it knew, and where its own output goes. Its cells have output of their own.
    Cells {
        lines: &'a OwnedFd,
        reports: &'a OwnedFd,
        state: &'a OwnedFd,
        nowhere: &'a OwnedFd,
    },
}

/// The guest's socket, in a guest that is started at once.
const CHANNEL_FD: i32 = 3;

/// As a shell that takes cells knows them: numbers that scripts do not use.
const REPORTS_FD: i32 = 98;
const STATE_FD: i32 = 99;

/// Returns when the guest's first process has ended and the host was told; for a guest that
/// enters, never. `cells` is the folder for the cells of a shell that is kept.
pub(super) fn run(
    first: First,
    walls: Walls<'_>,
    control: &OwnedFd,
    channel: UnixStream,
    cells: Option<OwnedFd>,
) -> io::Result<()> {
    let signals = Signals::new()?;
    let status = match first {
        First::Enters => {
            drop(channel);
            loop {
                signals.next(None)?;
            }
        }
        First::Started(command) | First::Fetches(command) => {
            let guest = start(&command, walls, Inherited::Channel(&channel))?;
            drop(channel);
            loop {
                match signals.next(Some(guest))? {
                    Signalled::Ended(status) => break status,
                    Signalled::Interrupt => interrupt(guest),
                    Signalled::Other => {}
                }
            }
        }
        First::Scripted(mut command) => {
            let job = job(&channel)?;
            // The user's directory was mounted there while this process waited.
            chdir(WORK)?;
            if is_users_directory()? {
                // Imports leave nothing in it.
                let name = "PYTHONDONTWRITEBYTECODE".to_owned();
                command.environment.push((name, "1".to_owned()));
            }
            if job.is_session {
                let folder = cells.ok_or(io::ErrorKind::NotFound)?;
                let session =
                    shell::Session::new(command, walls, &signals, control, folder, channel);
                session?.serve()?
            } else {
                script(command, &job, walls, &signals, channel)?
            }
        }
    };
    control::send(control.as_fd(), &FromInit::Ended { status }, &[])
}

fn is_users_directory() -> io::Result<bool> {
    Ok(fs::metadata(WORK)?.dev() != fs::metadata(BOX)?.dev())
}

/// A guest that is not ready to be interrupted would die of it; it finds the host's word on its
/// socket once it is.
fn interrupt(guest: i32) {
    if catches(guest, Signal::SIGINT as i32) {
        // It may have ended.
        let _ = kill(Pid::from_raw(guest), Signal::SIGINT);
    }
}

/// Whether a process has a handler for this signal.
pub(super) fn catches(process: i32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    caught & (1 << (signal - 1)) != 0
}

fn script(
    mut command: Command,
    job: &WorkerJob,
    walls: Walls<'_>,
    signals: &Signals,
    channel: UnixStream,
) -> io::Result<i32> {
    let door = broker::door()?;
    let (script, input) = lay_out(job)?;
    command.arguments.push(script);
    command.arguments.extend(job.args.iter().cloned());
    let guest = start(&command, walls, Inherited::Input(&input))?;
    let mut broker = Broker::new(channel, door);
    loop {
        broker.relay(&[signals.as_fd()], None)?;
        if let Signalled::Ended(status) = signals.next(Some(guest))? {
            return Ok(status);
        }
    }
}

fn job(mut channel: &UnixStream) -> io::Result<WorkerJob> {
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

/// Code and input as files: no text of the guest's is ever an option or a variable.
fn lay_out(job: &WorkerJob) -> io::Result<(String, File)> {
    let (script, input) = (Path::new(BOX).join("main"), Path::new(BOX).join("input"));
    fs::write(&script, &job.code)?;
    fs::write(&input, if job.input.text() == "null" { "" } else { job.input.text() })?;
    let opened = File::open(&input)?;
    fs::remove_file(&input)?;
    Ok((script.display().to_string(), opened))
}

pub(super) fn start(
    command: &Command,
    walls: Walls<'_>,
    inherited: Inherited<'_>,
) -> io::Result<i32> {
    let exec = Exec::new(command)?;
    if let Some(pid) = sys::fork()? {
        return Ok(pid);
    }
    let become_it = || -> io::Result<Infallible> {
        setsid()?;
        SigSet::empty().thread_set_mask()?;
        // The runtime of our own program ignores it.
        sys::default_signal(Signal::SIGPIPE)?;
        // Should memory run out, it is the guest that goes; where there is no /proc, whoever has
        // the most.
        let _ = fs::write("/proc/self/oom_score_adj", "1000");
        if let Some(rules) = walls.rules {
            ruleset::restrict(rules)?;
        }
        // Everything else is closed by the exec.
        match inherited {
            Inherited::Channel(channel) => {
                sys::give(channel.as_fd().try_clone_to_owned()?, CHANNEL_FD)?;
            }
            Inherited::Input(input) => dup2_stdin(input.as_fd())?,
            Inherited::Cells { lines, reports, state, nowhere } => {
                sys::give(reports.try_clone()?, REPORTS_FD)?;
                sys::give(state.try_clone()?, STATE_FD)?;
                dup2_stdin(lines)?;
                dup2_stdout(nowhere)?;
                dup2_stderr(nowhere)?;
            }
        }
        sys::limit(libc::RLIMIT_NOFILE, walls.open_files)?;
        exec.run()
    };
    let _ = become_it();
    sys::exit_now(127)
}
