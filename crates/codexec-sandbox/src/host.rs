//! The host's side: starts the zygote, requests keepers, and reads their messages.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::control::{self, AttachReply, FromZygote, ProgramCommand, ToZygote};
use crate::worker::CONFINED;
use crate::{Launch, Layer, LayerError, MissingLayer, sys};

/// How long a zygote may take to attach a mount.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(10);

/// The host's handle of a zygote. Dropping the handle ends the zygote; its keepers end when their
/// own links are dropped.
pub struct ZygoteLink {
    control: OwnedFd,
    process: Child,
}

/// The host's handle of a keeper: a non-blocking packet socket for [`crate::ToKeeper`] and
/// [`crate::FromKeeper`]. Dropping the handle kills the keeper's worker and ends the keeper.
pub struct KeeperLink(UnixDatagram);

/// The descriptors that a keeper attaches to [`crate::FromKeeper::Spawned`].
pub struct WorkerHandles {
    /// The worker's socket; for programs, the socket of its first process.
    socket: OwnedFd,
    pidfd: OwnedFd,
}

impl ZygoteLink {
    /// Starts `program role` with an empty environment. The program inherits no descriptor but its
    /// end of the control socket, as stdin.
    #[expect(clippy::disallowed_methods, reason = "the one place that starts a guest's process")]
    pub fn start(program: &Path, role: &str) -> io::Result<ZygoteLink> {
        let (control, theirs) = control::pair()?;
        let process = Command::new(program)
            // The command line is visible to guests.
            .arg0("codexec")
            .arg(role)
            .env_clear()
            // Hides the host's time zone from guests.
            .env("TZ", "UTC")
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()?;
        Ok(ZygoteLink { control, process })
    }

    pub(crate) fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    pub fn start_keeper(&self) -> io::Result<KeeperLink> {
        self.request(&ToZygote::Keeper, &[])
    }

    /// Starts a program in the rootfs, with a packet socket to the host as its stdin.
    pub fn start_program(&self, program: ProgramCommand) -> io::Result<KeeperLink> {
        self.request(&ToZygote::Start(program), &[])
    }

    /// Attaches `mount` at `target` in the running worker with these user and mount namespaces.
    /// Blocks.
    pub fn attach(
        &self,
        namespaces: [BorrowedFd<'_>; 2],
        mount: BorrowedFd<'_>,
        target: &Path,
    ) -> io::Result<()> {
        let [user, mounts] = namespaces;
        let request = ToZygote::Attach { target: target.to_owned() };
        let answer = self.request(&request, &[user, mounts, mount])?;
        answer.0.set_nonblocking(false)?;
        answer.0.set_read_timeout(Some(ATTACH_TIMEOUT))?;
        match control::receive(answer.as_fd())? {
            Some((AttachReply::Done, _)) => Ok(()),
            Some((AttachReply::Failed { errno }, _)) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Makes the zygote enter the plan's rootfs. Must be the first request. Blocks.
    pub fn enter_rootfs(
        &self,
        launch: &Launch,
    ) -> io::Result<Result<Vec<MissingLayer>, LayerError>> {
        control::send(self.control.as_fd(), &ToZygote::Enter(launch.clone()), &[])?;
        match control::receive(self.control.as_fd())? {
            Some((FromZygote::Entered { missing }, _)) => Ok(Ok(missing)),
            Some((FromZygote::Broken(broken), _)) => Ok(Err(broken)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn request(&self, request: &ToZygote, fds: &[BorrowedFd<'_>]) -> io::Result<KeeperLink> {
        let (ours, theirs) = control::pair()?;
        let fds: Vec<BorrowedFd<'_>> = fds.iter().copied().chain([theirs.as_fd()]).collect();
        control::send(self.control.as_fd(), request, &fds)?;
        let ours = UnixDatagram::from(ours);
        ours.set_nonblocking(true)?;
        Ok(KeeperLink(ours))
    }
}

impl Drop for ZygoteLink {
    fn drop(&mut self) {
        // The zygote ends when `control` closes. Killing it here lets us reap it now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl KeeperLink {
    pub fn into_socket(self) -> UnixDatagram {
        self.0
    }
}

impl AsFd for KeeperLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl WorkerHandles {
    /// Takes the descriptors attached to a [`crate::FromKeeper::Spawned`].
    pub fn new(fds: Vec<OwnedFd>) -> io::Result<WorkerHandles> {
        let [socket, pidfd] = <[OwnedFd; 2]>::try_from(fds)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(WorkerHandles { socket, pidfd })
    }

    /// Returns the socket of a worker that runs our own engine, non-blocking.
    pub fn stream(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::from(self.socket.try_clone()?);
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    /// Returns the packet socket of a worker for programs, non-blocking.
    pub fn packets(&self) -> io::Result<UnixDatagram> {
        let packets = UnixDatagram::from(self.socket.try_clone()?);
        packets.set_nonblocking(true)?;
        Ok(packets)
    }

    /// Returns the host's process id of the worker's first process; see [`process_id`].
    pub fn process_id(&self) -> Option<i32> {
        process_id(self.pidfd.as_fd())
    }

    /// Kills the worker, and with it everything in its PID namespace.
    pub fn kill(&self) {
        // Fails only if the worker is already dead.
        let _ = sys::kill(self.pidfd.as_fd());
    }

    /// Sends SIGTERM to all processes of a worker for programs.
    pub fn terminate(&self) {
        let _ = sys::signal(self.pidfd.as_fd(), libc::SIGTERM);
    }

    /// Makes the first process of a worker for programs interrupt its guest.
    pub fn interrupt(&self) {
        interrupt_process(&self.pidfd);
    }
}

/// Returns the process id behind a pidfd in our own PID namespace, or `None` if the process is
/// gone. The id comes from the kernel: a process in another namespace knows only its id there, and
/// could lie.
pub fn process_id(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    pid.trim().parse().ok().filter(|pid| *pid > 0)
}

/// Sends SIGINT to the process behind a pidfd. Does nothing if the process has ended; unlike a
/// process id, a pidfd is never reused.
pub fn interrupt_process(pidfd: &OwnedFd) {
    let _ = sys::signal(pidfd.as_fd(), libc::SIGINT);
}

/// A guest's process, held by a pidfd. Signals never reach a later process with the same id.
#[derive(Debug)]
pub struct GuestProcess(OwnedFd);

impl GuestProcess {
    pub fn open(pid: i32) -> io::Result<GuestProcess> {
        Ok(GuestProcess(sys::open_process(pid.unsigned_abs())?))
    }

    /// Sends SIGSTOP, which a process cannot block.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
    }

    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    pub fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    pub fn interrupt(&self) {
        self.signal(libc::SIGINT);
    }

    fn signal(&self, signal: libc::c_int) {
        // Fails only if the process has ended.
        let _ = sys::signal(self.0.as_fd(), signal);
    }
}

/// Returns the time since boot, on the clock of the start times in `/proc/<pid>/stat`.
pub fn time_since_boot() -> Duration {
    sys::time_since_boot()
}

/// Parses a worker's first message: confined, or the layer that failed. Returns `None` while the
/// message is incomplete.
pub fn parse_confined(received: &[u8]) -> Option<Result<(), LayerError>> {
    match received {
        [] => None,
        [CONFINED, ..] => Some(Ok(())),
        _ => {
            let line = received.strip_suffix(b"\n")?;
            let invalid = || {
                LayerError::new(Layer::Seccomp, "invalid first message from a worker", libc::EPROTO)
            };
            Some(Err(serde_json::from_slice(line).unwrap_or_else(|_| invalid())))
        }
    }
}

/// Returns true if a file system has no bytes or no inodes left. One inode is not counted: a
/// script's stdin is an unlinked file, which disappears with the script.
pub fn is_filesystem_full(directory: &OwnedFd) -> bool {
    nix::sys::statvfs::fstatvfs(directory)
        .is_ok_and(|stat| stat.blocks_available() == 0 || stat.files_free() <= 1)
}

/// Returns the used bytes of a file system.
pub fn used_bytes(directory: &OwnedFd) -> u64 {
    nix::sys::statvfs::fstatvfs(directory)
        .map_or(0, |stat| stat.blocks().saturating_sub(stat.blocks_free()) * stat.fragment_size())
}

/// Returns true if two processes share their memory, as between `vfork` and `exec`.
pub fn shares_memory(one: i32, other: i32) -> bool {
    sys::shares_memory(one, other)
}

/// Raises the scheduling priority of this thread as far as our rights allow.
pub fn raise_thread_priority() {
    sys::raise_thread_priority();
}

/// Returns true if the host runs as root. Guests then run as another user.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Returns true if any process has this file open for writing. `file` must be open read-only.
pub fn is_open_for_writing(file: BorrowedFd<'_>) -> bool {
    crate::sys::is_open_for_writing(file)
}

/// Runs file operations as this user, if we are root: no other user can create files on a guest's
/// own file system. Affects only this thread, so `work` must be synchronous.
pub fn run_as_file_user<T>((user, group): (u32, u32), work: impl FnOnce() -> T) -> T {
    let _user = is_root().then(|| crate::sys::FileUser::become_user(user, group));
    work()
}
