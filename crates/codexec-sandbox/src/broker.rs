//! Shares the guest's one socket to the host among many guest processes. Each process opens its
//! own connection to the guest's first process, which relays frames between them and the host.

mod frame_socket;

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

use frame_socket::FrameSocket;

/// The socket to which every process of a guest connects. No file descriptor is passed through it,
/// because the kernel counts descriptors in flight for all guests together.
const SOCKET_PATH: &str = "/box/listener/mcp";

/// Further connections are closed on accept.
const MAX_CONNECTIONS: usize = 64;

/// Connections are not read while more than this is queued for the host.
const MAX_HOST_BYTES: usize = 1 << 20;

/// A connection with more unsent bytes than this is closed.
const MAX_CONNECTION_BYTES: usize = 32 << 20;

/// The limit on incomplete frames of all connections together. A connection that exceeds it is
/// closed.
const MAX_UNREAD_BYTES: usize = 64 << 20;

/// Connections are not read while this many answers are pending, those for closed connections
/// included.
const MAX_ASKS: usize = 1_024;

/// How often [`Broker::drain`] looks for more, because a process that still runs may send without
/// end. Enough for all connections, and for the largest frame.
const MAX_DRAIN_ROUNDS: usize = 512;

/// How long the host may take to read the last frames.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Connects to the guest's broker, from any process of the guest.
pub fn connect_to_broker() -> io::Result<UnixStream> {
    UnixStream::connect(SOCKET_PATH)
}

/// Binds the guest's broker socket. The calling process is the guest's first process.
pub(crate) fn bind_listener() -> io::Result<UnixListener> {
    let path = Path::new(SOCKET_PATH);
    let folder = path.parent().unwrap_or(path);
    fs::create_dir(folder)?;
    let listener = bind_listener_at(path)?;
    // Guests can connect through the folder, but not list it.
    fs::set_permissions(folder, Permissions::from_mode(0o111))?;
    Ok(listener)
}

fn bind_listener_at(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Relay between one guest's connections and its host. Input from connections is hostile.
pub(crate) struct Broker {
    host: FrameSocket,
    listener: UnixListener,
    connections: BTreeMap<ConnectionId, FrameSocket>,
    next_connection: ConnectionId,
    asks: HashMap<u32, PendingAsk>,
    next_ask: u32,
    /// Orders from the host to the first process itself; `None` outside of a session.
    orders: Option<VecDeque<Order>>,
    is_host_gone: bool,
}

/// An order from the host to the first process of a session.
#[derive(Debug, PartialEq)]
pub(crate) enum Order {
    Cell(Cell),
    Interrupt,
}

type ConnectionId = u64;

/// An ask without an answer yet. Its connection may be closed before the answer arrives.
struct PendingAsk {
    connection: ConnectionId,
    id: u32,
}

/// The sockets that `poll` reported ready.
struct Readiness {
    until: bool,
    host: PollFlags,
    listener: bool,
    connections: Vec<(ConnectionId, PollFlags)>,
}

impl Broker {
    pub(crate) fn new(host: UnixStream, listener: UnixListener) -> Broker {
        Broker {
            host: FrameSocket::new(OwnedFd::from(host)),
            listener,
            connections: BTreeMap::new(),
            next_connection: 0,
            asks: HashMap::new(),
            next_ask: 1,
            orders: None,
            is_host_gone: false,
        }
    }

    /// Creates the broker of a session, where the host also sends orders.
    pub(crate) fn with_orders(host: UnixStream, listener: UnixListener) -> Broker {
        Broker { orders: Some(VecDeque::new()), ..Broker::new(host, listener) }
    }

    /// Removes and returns the oldest order.
    pub(crate) fn next_order(&mut self) -> Option<Order> {
        self.orders.as_mut().and_then(VecDeque::pop_front)
    }

    pub(crate) fn is_host_gone(&self) -> bool {
        self.is_host_gone
    }

    /// Queues a frame of the first process itself. [`Broker::relay`] sends what is left of it.
    pub(crate) fn send(&mut self, frame: &FromGuest) -> io::Result<()> {
        self.host.push(&frame.encode().map_err(invalid)?);
        self.host.flush()
    }

    /// Relays until one of `until` is readable, an order arrives, the deadline passes, or the host
    /// is gone. The host has received only complete frames by then.
    pub(crate) fn relay(
        &mut self,
        until: &[BorrowedFd<'_>],
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        // True if connections hold complete frames that the host's queue could not take.
        let mut is_behind = false;
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let timeout = match left {
                _ if is_behind && !self.is_full() => PollTimeout::ZERO,
                None => PollTimeout::NONE,
                Some(left) => PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX),
            };
            let mut ready = self.wait(until, timeout)?;
            if ready.listener {
                self.accept()?;
            }
            for (id, flags) in ready.connections {
                self.serve(id, flags);
            }
            is_behind = self.forward();
            if ready.host.intersects(READABLE) && !self.host.fill(usize::MAX)? {
                self.is_host_gone = true;
                return Ok(());
            }
            self.handle_host_frames()?;
            self.host.flush()?;
            ready.until |= deadline.is_some_and(|at| Instant::now() >= at);
            ready.until |= self.orders.as_ref().is_some_and(|orders| !orders.is_empty());
            if ready.until {
                return self.flush_host();
            }
        }
    }

    /// Forwards everything that the guest's processes have sent by now, without waiting for more.
    /// Called when the guest has ended, or reports the end of a cell: a process that has exited may
    /// have sent its last frame unread.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        for _ in 0..MAX_DRAIN_ROUNDS {
            let ready = self.wait(&[], PollTimeout::ZERO)?;
            if !ready.listener && ready.connections.is_empty() {
                break;
            }
            if ready.listener {
                self.accept()?;
            }
            for (id, flags) in ready.connections {
                self.serve(id, flags);
            }
            self.forward();
            self.flush_host()?;
        }
        self.flush_host()
    }

    fn wait(&self, until: &[BorrowedFd<'_>], timeout: PollTimeout) -> io::Result<Readiness> {
        let mut fds = vec![
            PollFd::new(self.host.as_fd(), poll_flags(true, &self.host)),
            PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
        ];
        fds.extend(until.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)));
        let is_open = !self.is_full();
        let polled = self
            .connections
            .iter()
            .map(|(id, connection)| (*id, connection, poll_flags(is_open, connection)));
        // An unread connection would report POLLHUP again and again.
        let polled: Vec<_> = polled.filter(|(_, _, flags)| !flags.is_empty()).collect();
        fds.extend(
            polled.iter().map(|(_, connection, flags)| PollFd::new(connection.as_fd(), *flags)),
        );
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut flags = fds.iter().map(|fd| fd.revents().unwrap_or(PollFlags::POLLERR));
        let mut next = || flags.next().unwrap_or(PollFlags::empty());
        let host = next();
        let listener = !next().is_empty();
        let until = until.iter().filter(|_| !next().is_empty()).count() > 0;
        let connections = polled.iter().map(|(id, _, _)| (*id, next()));
        let connections = connections.filter(|(_, flags)| !flags.is_empty()).collect();
        Ok(Readiness { until, host, listener, connections })
    }

    fn is_full(&self) -> bool {
        self.host.unsent_bytes() > MAX_HOST_BYTES || self.asks.len() >= MAX_ASKS
    }

    /// Accepts a waiting connection, or closes it if there are too many.
    fn accept(&mut self) -> io::Result<()> {
        match self.listener.accept() {
            Ok((socket, _)) if self.connections.len() < MAX_CONNECTIONS => {
                self.connections
                    .insert(self.next_connection, FrameSocket::new(OwnedFd::from(socket)));
                self.next_connection += 1;
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

    /// Reads from a connection and writes to it. A failed connection is closed.
    fn serve(&mut self, id: ConnectionId, flags: PollFlags) {
        let unread: usize = self.connections.values().map(FrameSocket::unread_bytes).sum();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let max_bytes = MAX_UNREAD_BYTES.saturating_sub(unread);
        let is_well = !flags.contains(PollFlags::POLLNVAL)
            && connection.flush().is_ok()
            && (!flags.intersects(READABLE) || connection.fill(max_bytes).unwrap_or(false));
        // The peer may have closed the connection right after its last frame.
        if !is_well && !self.forward_from(id) {
            self.connections.remove(&id);
        }
    }

    /// Forwards complete frames to the host. Returns true if it stopped because the host's queue is
    /// full.
    fn forward(&mut self) -> bool {
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        ids.into_iter().any(|id| self.forward_from(id))
    }

    /// Forwards the complete frames of one connection, like [`Broker::forward`].
    fn forward_from(&mut self, id: ConnectionId) -> bool {
        loop {
            if self.is_full() {
                return true;
            }
            let Some(connection) = self.connections.get_mut(&id) else { return false };
            let frame = match connection.take() {
                Ok(Some(body)) => FromGuest::decode(body).ok(),
                Ok(None) => return false,
                Err(_) => None,
            };
            let is_forwarded = frame.is_some_and(|frame| self.forward_frame(id, frame));
            if !is_forwarded {
                self.connections.remove(&id);
            }
        }
    }

    /// Forwards one frame. Returns false if a connection may not send this frame.
    fn forward_frame(&mut self, connection: ConnectionId, frame: FromGuest) -> bool {
        let (frame, pending) = match frame {
            FromGuest::Ask { id, ask } => {
                let new_id = self.next_free_id();
                let pending = PendingAsk { connection, id };
                (FromGuest::Ask { id: new_id, ask }, Some((new_id, pending)))
            }
            FromGuest::Progress(text) => (FromGuest::Progress(text), None),
            FromGuest::Image(image) => (FromGuest::Image(image), None),
            FromGuest::Compiled
            | FromGuest::Output { .. }
            | FromGuest::Returned(_)
            | FromGuest::Threw(_)
            | FromGuest::CellEnded { .. } => return false,
        };
        // The new id may be longer, and make the frame too long.
        let Ok(bytes) = frame.encode() else { return false };
        self.host.push(&bytes);
        self.asks.extend(pending);
        true
    }

    fn next_free_id(&mut self) -> u32 {
        while self.asks.contains_key(&self.next_ask) {
            self.next_ask = self.next_ask.wrapping_add(1);
        }
        let id = self.next_ask;
        self.next_ask = id.wrapping_add(1);
        id
    }

    /// Handles all complete frames from the host: answers go to their connections.
    fn handle_host_frames(&mut self) -> io::Result<()> {
        loop {
            let Some(body) = self.host.take().map_err(invalid)? else { return Ok(()) };
            let order = match ToGuest::decode(body).map_err(invalid)? {
                ToGuest::Answer(answer) => {
                    self.deliver(answer);
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

    fn deliver(&mut self, AskAnswer { id, result }: AskAnswer) {
        let Some(pending) = self.asks.remove(&id) else { return };
        let Some(connection) = self.connections.get_mut(&pending.connection) else { return };
        let answer = ToGuest::Answer(AskAnswer { id: pending.id, result });
        let is_sent = answer.encode().is_ok_and(|bytes| {
            connection.push(&bytes);
            connection.flush().is_ok()
        });
        if !is_sent || connection.unsent_bytes() > MAX_CONNECTION_BYTES {
            self.connections.remove(&pending.connection);
        }
    }

    fn flush_host(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
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

fn poll_flags(is_read: bool, socket: &FrameSocket) -> PollFlags {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::POLLIN, is_read);
    flags.set(PollFlags::POLLOUT, socket.unsent_bytes() > 0);
    flags
}

fn invalid(error: codexec_types::FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests;
