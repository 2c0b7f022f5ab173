//! The host's side: starting the zygote, asking it for keepers, and reading what they say.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::control::{self, Attached, Command as Started, FromZygote, ToZygote};
use crate::worker::CONFINED;
use crate::{Broken, Launch, Layer, Missing, sys};

/// How long a zygote may take to attach a mount.
const ATTACH: Duration = Duration::from_secs(10);

/// The host's hold on a zygote. Dropping it ends the zygote; its keepers end when their own
/// links are dropped.
pub struct ZygoteLink {
    control: OwnedFd,
    process: Child,
}

/// The host's hold on a keeper: a packet socket for [`crate::ToKeeper`] and
/// [`crate::FromKeeper`], non-blocking. Dropping it kills the keeper's worker and ends the keeper.
pub struct KeeperLink(UnixDatagram);

/// What a keeper sends beside [`crate::FromKeeper::Spawned`].
pub struct WorkerHandles {
    /// A worker's own socket; for programs, the one to its first process.
    socket: OwnedFd,
    pidfd: OwnedFd,
}

impl ZygoteLink {
    /// Starts `program role` with nothing of our environment and nothing of our descriptors but
    /// its end of the control socket, as its standard input.
    #[expect(clippy::disallowed_methods, reason = "the one place that starts a guest's process")]
    pub fn start(program: &Path, role: &str) -> io::Result<ZygoteLink> {
        let (control, theirs) = control::pair()?;
        let process = Command::new(program)
            // A guest sees the command line of its first process.
            .arg0("codexec")
            .arg(role)
            .env_clear()
            // A guest's local time is not the host's.
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

    pub fn keeper(&self) -> io::Result<KeeperLink> {
        self.ask(&ToZygote::Keeper, &[])
    }

    /// Starts a program in the room, with a packet socket to us as its standard input.
    pub fn start_program(&self, program: Started) -> io::Result<KeeperLink> {
        self.ask(&ToZygote::Start(program), &[])
    }

    /// Attaches `mount` at `target` in a worker that runs, whose user and mount namespaces these
    /// are. Blocks.
    pub fn attach(
        &self,
        namespaces: [BorrowedFd<'_>; 2],
        mount: BorrowedFd<'_>,
        target: &Path,
    ) -> io::Result<()> {
        let [user, mounts] = namespaces;
        let asked = ToZygote::Attach { target: target.to_owned() };
        let answer = self.ask(&asked, &[user, mounts, mount])?;
        answer.0.set_nonblocking(false)?;
        answer.0.set_read_timeout(Some(ATTACH))?;
        match control::receive(answer.as_fd())? {
            Some((Attached::Done, _)) => Ok(()),
            Some((Attached::Failed { errno }, _)) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Puts the zygote into the plan's room; before it is asked for anything else. Blocks.
    pub fn enter(&self, launch: &Launch) -> io::Result<Result<Vec<Missing>, Broken>> {
        control::send(self.control.as_fd(), &ToZygote::Enter(launch.clone()), &[])?;
        match control::receive(self.control.as_fd())? {
            Some((FromZygote::Entered { missing }, _)) => Ok(Ok(missing)),
            Some((FromZygote::Broken(broken), _)) => Ok(Err(broken)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn ask(&self, what: &ToZygote, beside: &[BorrowedFd<'_>]) -> io::Result<KeeperLink> {
        let (ours, theirs) = control::pair()?;
        let fds: Vec<BorrowedFd<'_>> = beside.iter().copied().chain([theirs.as_fd()]).collect();
        control::send(self.control.as_fd(), what, &fds)?;
        let ours = UnixDatagram::from(ours);
        ours.set_nonblocking(true)?;
        Ok(KeeperLink(ours))
    }
}

impl Drop for ZygoteLink {
    fn drop(&mut self) {
        // It ends by itself when `control` closes; this also reaps it.
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
    /// From the descriptors beside a [`crate::FromKeeper::Spawned`].
    pub fn new(fds: Vec<OwnedFd>) -> io::Result<WorkerHandles> {
        let [socket, pidfd] = <[OwnedFd; 2]>::try_from(fds)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(WorkerHandles { socket, pidfd })
    }

    /// The socket of a worker with a guest of ours, non-blocking.
    pub fn stream(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::from(self.socket.try_clone()?);
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    /// The packet socket of a worker for programs, non-blocking.
    pub fn packets(&self) -> io::Result<UnixDatagram> {
        let packets = UnixDatagram::from(self.socket.try_clone()?);
        packets.set_nonblocking(true)?;
        Ok(packets)
    }

    /// The id of the worker's first process on the host; see [`process_id`].
    pub fn process_id(&self) -> Option<i32> {
        process_id(self.pidfd.as_fd())
    }

    /// Kills the worker, and with it everything in its process namespace.
    pub fn kill(&self) {
        // The only failure is that it is dead already.
        let _ = sys::kill(self.pidfd.as_fd());
    }

    /// Asks everything in a worker for programs to end.
    pub fn ask_to_end(&self) {
        let _ = sys::signal(self.pidfd.as_fd(), libc::SIGTERM);
    }

    /// Tells the first process of a worker for programs that what its guest does is to stop.
    pub fn interrupt(&self) {
        interrupt(&self.pidfd);
    }
}

/// Returns the id that the process behind a pidfd has in our own process namespace, or `None` if
/// it is gone. The kernel says so: what a process in another namespace says of itself would be
/// a number of that namespace, and its own word.
pub fn process_id(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = about.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    pid.trim().parse().ok().filter(|pid| *pid > 0)
}

/// Interrupts the process behind a pidfd. One that has ended hears nothing, and its id may be
/// anybody's by then: a pidfd never is.
pub fn interrupt(pidfd: &OwnedFd) {
    let _ = sys::signal(pidfd.as_fd(), libc::SIGINT);
}

/// A process of a guest, held by a pidfd: signals reach it and never a later process with its id.
#[derive(Debug)]
pub struct GuestProcess(OwnedFd);

impl GuestProcess {
    pub fn open(pid: i32) -> io::Result<GuestProcess> {
        Ok(GuestProcess(sys::open_process(pid.unsigned_abs())?))
    }

    /// Stops it, whatever it does against that.
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

    /// The only failure is that it has ended.
    fn signal(&self, signal: libc::c_int) {
        let _ = sys::signal(self.0.as_fd(), signal);
    }
}

/// How long the machine runs, as the kernel counts when processes begin.
pub fn time_since_boot() -> Duration {
    sys::time_since_boot()
}

/// Reads a worker's first words: whether all its walls stand. `None` while they are not whole.
pub fn confined(said: &[u8]) -> Option<Result<(), Broken>> {
    match said {
        [] => None,
        [CONFINED, ..] => Some(Ok(())),
        _ => {
            let line = said.strip_suffix(b"\n")?;
            let garbled =
                || Broken::new(Layer::Seccomp, "a worker said nothing sensible", libc::EPROTO);
            Some(Err(serde_json::from_slice(line).unwrap_or_else(|_| garbled())))
        }
    }
}

/// Whether a file system has no room left, for bytes or for files. A script's standard input is a
/// file without a name, which is gone with it.
pub fn is_full(directory: &OwnedFd) -> bool {
    nix::sys::statvfs::fstatvfs(directory)
        .is_ok_and(|found| found.blocks_available() == 0 || found.files_free() <= 1)
}

/// Returns how much the files of a file system take.
pub fn used_bytes(directory: &OwnedFd) -> u64 {
    nix::sys::statvfs::fstatvfs(directory).map_or(0, |found| {
        found.blocks().saturating_sub(found.blocks_free()) * found.fragment_size()
    })
}

/// Returns true if two processes are threads of one memory, as between `vfork` and `exec`.
pub fn shares_memory(one: i32, other: i32) -> bool {
    sys::shares_memory(one, other)
}

/// Has the scheduler prefer this thread, as far as we may ask for that.
pub fn hurry_thread() {
    sys::hurry_thread();
}

/// Whether guests become somebody else than we are.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// True if somebody has this file open for writing. `file` must be open for reading only.
pub fn is_open_for_writing(file: BorrowedFd<'_>) -> bool {
    crate::sys::is_open_for_writing(file)
}

/// Does some work on files as this user, where we are root: on a guest's own file system nobody
/// else can create anything. Only for work that blocks: it concerns this thread.
pub fn as_file_user<T>((user, group): (u32, u32), work: impl FnOnce() -> T) -> T {
    let _user = is_root().then(|| crate::sys::FileUser::become_user(user, group));
    work()
}
