//! Many processes of one guest, one socket to the host: each process that wants to ask something
//! opens a line of its own, and the guest's first process relays what is said on them.

mod link;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use codexec_types::{AskAnswer, Cell, FromGuest, ToGuest};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use link::Link;

/// Where every process of a guest finds the door. No descriptor is passed through it: the kernel
/// counts those of all guests together.
const DOOR: &str = "/box/door/mcp";

/// More at once are closed as they come.
const MAX_LINES: usize = 64;

/// Lines are not read while the host has more than this to take.
const MAX_HOST_BYTES: usize = 1 << 20;

/// A line that leaves more unread than this is closed.
const MAX_LINE_BYTES: usize = 32 << 20;

/// What all lines together may have begun to say; who goes beyond it is closed.
const MAX_UNREAD_BYTES: usize = 64 << 20;

/// Lines are not read while the host owes more answers than this. Those of closed lines count.
const MAX_ASKS: usize = 1_024;

/// How long the host may take for the last words.
const FLUSH: Duration = Duration::from_secs(1);

/// Opens a line to the host, from any process of a guest that has a door.
pub fn open_line() -> io::Result<UnixStream> {
    UnixStream::connect(DOOR)
}

/// Makes the door of the guest that we are the first process of.
pub(crate) fn door() -> io::Result<UnixListener> {
    let path = Path::new(DOOR);
    let folder = path.parent().unwrap_or(path);
    fs::create_dir(folder)?;
    let door = door_at(path)?;
    // It can be gone through, and is in nobody's way who looks around.
    fs::set_permissions(folder, Permissions::from_mode(0o111))?;
    Ok(door)
}

fn door_at(path: &Path) -> io::Result<UnixListener> {
    let door = UnixListener::bind(path)?;
    door.set_nonblocking(true)?;
    Ok(door)
}

/// Relays between the lines of one guest and its host. What comes from a line is hostile.
pub(crate) struct Broker {
    host: Link,
    door: UnixListener,
    lines: BTreeMap<LineId, Link>,
    next_line: LineId,
    asks: HashMap<u32, Asked>,
    next_ask: u32,
    /// What the host wants of the first process itself; `None` where it can want nothing.
    orders: Option<VecDeque<Order>>,
    is_host_gone: bool,
}

/// What the host says to the first process of a session.
#[derive(Debug, PartialEq)]
pub(crate) enum Order {
    Cell(Cell),
    Interrupt,
}

type LineId = u64;

/// Whose answer it will be. The line may be closed by then.
struct Asked {
    line: LineId,
    id: u32,
}

/// What can be done now, and on what.
struct Ready {
    until: bool,
    host: PollFlags,
    door: bool,
    lines: Vec<(LineId, PollFlags)>,
}

impl Broker {
    pub(crate) fn new(host: UnixStream, door: UnixListener) -> Broker {
        Broker {
            host: Link::new(OwnedFd::from(host)),
            door,
            lines: BTreeMap::new(),
            next_line: 0,
            asks: HashMap::new(),
            next_ask: 1,
            orders: None,
            is_host_gone: false,
        }
    }

    /// The same for a session, where the host also has orders.
    pub(crate) fn with_orders(host: UnixStream, door: UnixListener) -> Broker {
        Broker { orders: Some(VecDeque::new()), ..Broker::new(host, door) }
    }

    /// What the host wants next, of what has come.
    pub(crate) fn order(&mut self) -> Option<Order> {
        self.orders.as_mut().and_then(VecDeque::pop_front)
    }

    pub(crate) fn is_host_gone(&self) -> bool {
        self.is_host_gone
    }

    /// Says something of the first process's own. It goes out with the next [`Broker::relay`].
    pub(crate) fn say(&mut self, frame: &FromGuest) -> io::Result<()> {
        self.host.push(&frame.encode().map_err(invalid)?);
        self.host.flush()
    }

    /// Until one of `until` can be read, an order has come, the deadline has passed, or the host is
    /// gone. The host has whole frames then.
    pub(crate) fn relay(
        &mut self,
        until: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        // Whether lines have said something whole that the host could not take.
        let mut is_behind = false;
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let timeout = match left {
                _ if is_behind && !self.is_full() => PollTimeout::ZERO,
                None => PollTimeout::NONE,
                Some(left) => PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX),
            };
            let mut ready = self.wait(until, timeout)?;
            if ready.door {
                self.accept()?;
            }
            for (id, flags) in ready.lines {
                self.serve(id, flags);
            }
            is_behind = self.forward();
            if ready.host.intersects(READABLE) && !self.host.fill(usize::MAX)? {
                self.is_host_gone = true;
                return Ok(());
            }
            self.deliver()?;
            self.host.flush()?;
            ready.until |= deadline.is_some_and(|at| Instant::now() >= at);
            ready.until |= self.orders.as_ref().is_some_and(|orders| !orders.is_empty());
            if ready.until {
                return self.flush_host();
            }
        }
    }

    fn wait(&self, until: &[BorrowedFd<'_>], timeout: PollTimeout) -> io::Result<Ready> {
        let mut fds = vec![
            PollFd::new(self.host.as_fd(), wanted(true, &self.host)),
            PollFd::new(self.door.as_fd(), PollFlags::POLLIN),
        ];
        fds.extend(until.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)));
        let is_open = !self.is_full();
        let watched = self.lines.iter().map(|(id, line)| (*id, line, wanted(is_open, line)));
        // One that is not to be read would still report that it has hung up, again and again.
        let watched: Vec<_> = watched.filter(|(_, _, wanted)| !wanted.is_empty()).collect();
        fds.extend(watched.iter().map(|(_, line, wanted)| PollFd::new(line.as_fd(), *wanted)));
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut flags = fds.iter().map(|fd| fd.revents().unwrap_or(PollFlags::POLLERR));
        let mut next = || flags.next().unwrap_or(PollFlags::empty());
        let host = next();
        let door = !next().is_empty();
        let until = until.iter().filter(|_| !next().is_empty()).count() > 0;
        let lines = watched.iter().map(|(id, _, _)| (*id, next()));
        Ok(Ready { until, host, door, lines: lines.filter(|(_, is)| !is.is_empty()).collect() })
    }

    fn is_full(&self) -> bool {
        self.host.unsent_bytes() > MAX_HOST_BYTES || self.asks.len() >= MAX_ASKS
    }

    /// Takes in what waits at the door.
    /// One more than there may be is closed as it comes.
    fn accept(&mut self) -> io::Result<()> {
        match self.door.accept() {
            Ok((socket, _)) if self.lines.len() < MAX_LINES => {
                self.lines.insert(self.next_line, Link::new(OwnedFd::from(socket)));
                self.next_line += 1;
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionAborted => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Reads from a line and writes to it. One that fails is closed.
    fn serve(&mut self, id: LineId, flags: PollFlags) {
        let unread: usize = self.lines.values().map(Link::unread_bytes).sum();
        let Some(line) = self.lines.get_mut(&id) else { return };
        let room = MAX_UNREAD_BYTES.saturating_sub(unread);
        let is_well = !flags.contains(PollFlags::POLLNVAL)
            && line.flush().is_ok()
            && (!flags.intersects(READABLE) || line.fill(room).unwrap_or(false));
        if !is_well {
            self.lines.remove(&id);
        }
    }

    /// Passes on what the lines have said whole. `true` if it stopped because the host is full.
    fn forward(&mut self) -> bool {
        let ids: Vec<LineId> = self.lines.keys().copied().collect();
        for id in ids {
            loop {
                if self.is_full() {
                    return true;
                }
                let Some(line) = self.lines.get_mut(&id) else { break };
                let frame = match line.take() {
                    Ok(Some(body)) => FromGuest::decode(body).ok(),
                    Ok(None) => break,
                    Err(_) => None,
                };
                let is_passed = frame.is_some_and(|frame| self.pass_on(id, frame));
                if !is_passed {
                    self.lines.remove(&id);
                }
            }
        }
        false
    }

    /// `false` if a line may not say this.
    fn pass_on(&mut self, line: LineId, frame: FromGuest) -> bool {
        let (frame, asked) = match frame {
            FromGuest::Ask { id, ask } => {
                let fresh = self.fresh_id();
                (FromGuest::Ask { id: fresh, ask }, Some((fresh, Asked { line, id })))
            }
            FromGuest::Progress(text) => (FromGuest::Progress(text), None),
            FromGuest::Image(image) => (FromGuest::Image(image), None),
            FromGuest::Compiled
            | FromGuest::Output { .. }
            | FromGuest::Returned(_)
            | FromGuest::Threw(_)
            | FromGuest::CellEnded { .. } => return false,
        };
        // Too long for a frame with the longer id.
        let Ok(bytes) = frame.encode() else { return false };
        self.host.push(&bytes);
        self.asks.extend(asked);
        true
    }

    fn fresh_id(&mut self) -> u32 {
        while self.asks.contains_key(&self.next_ask) {
            self.next_ask = self.next_ask.wrapping_add(1);
        }
        let id = self.next_ask;
        self.next_ask = id.wrapping_add(1);
        id
    }

    /// Gives the host's answers to those who asked.
    fn deliver(&mut self) -> io::Result<()> {
        loop {
            let Some(body) = self.host.take().map_err(invalid)? else { return Ok(()) };
            let order = match ToGuest::decode(body).map_err(invalid)? {
                ToGuest::Answer(answer) => {
                    self.give(answer);
                    continue;
                }
                ToGuest::Cell(cell) => Order::Cell(cell),
                ToGuest::Interrupt => Order::Interrupt,
                ToGuest::Start(_) => return Err(io::ErrorKind::InvalidData.into()),
            };
            let Some(orders) = &mut self.orders else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            orders.push_back(order);
        }
    }

    fn give(&mut self, AskAnswer { id, result }: AskAnswer) {
        let Some(asked) = self.asks.remove(&id) else { return };
        let Some(line) = self.lines.get_mut(&asked.line) else { return };
        let answer = ToGuest::Answer(AskAnswer { id: asked.id, result });
        let is_sent = answer.encode().is_ok_and(|bytes| {
            line.push(&bytes);
            line.flush().is_ok()
        });
        if !is_sent || line.unsent_bytes() > MAX_LINE_BYTES {
            self.lines.remove(&asked.line);
        }
    }

    fn flush_host(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + FLUSH;
        loop {
            self.host.flush()?;
            if self.host.unsent_bytes() == 0 {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            let mut fds = [PollFd::new(self.host.as_fd(), PollFlags::POLLOUT)];
            match poll(&mut fds, timeout) {
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

const READABLE: PollFlags = PollFlags::POLLIN.union(PollFlags::POLLHUP).union(PollFlags::POLLERR);

fn wanted(is_read: bool, link: &Link) -> PollFlags {
    let mut wanted = PollFlags::empty();
    wanted.set(PollFlags::POLLIN, is_read);
    wanted.set(PollFlags::POLLOUT, link.unsent_bytes() > 0);
    wanted
}

fn invalid(error: codexec_types::FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests;
