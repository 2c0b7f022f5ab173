//! Things on the host that a guest may want to reach: somebody to connect to by every way there
//! is, and a process to signal.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::host::{is_alive, secret};

/// Somebody to connect to: TCP and UDP on both loopbacks, a socket with a path and one without.
pub(crate) struct Listener {
    pub(crate) port: u16,
    pub(crate) udp: u16,
    pub(crate) path: PathBuf,
    /// The name of the socket without a path.
    pub(crate) name: String,
    connections: Arc<AtomicUsize>,
    datagrams: Arc<AtomicUsize>,
}

impl Listener {
    /// The threads end with the test's process.
    pub(crate) fn new(folder: &Path) -> Listener {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = tcp.local_addr().expect("its address").port();
        let udp_socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let udp = udp_socket.local_addr().expect("its address").port();
        let path = folder.join("sock");
        let name = format!("codexec-it-{}", secret());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let with_path = UnixListener::bind(&path).expect("a socket");
        let without = UnixListener::bind_addr(&address).expect("a socket");
        let connections = Arc::new(AtomicUsize::new(0));
        // Not every host has the second one.
        for listener in [Some(tcp), TcpListener::bind(("::1", port)).ok()].into_iter().flatten() {
            counted(&connections, move || listener.accept().is_ok());
        }
        for listener in [with_path, without] {
            counted(&connections, move || listener.accept().is_ok());
        }
        let datagrams = Arc::new(AtomicUsize::new(0));
        let both = [Some(udp_socket), UdpSocket::bind(("::1", udp)).ok()];
        for socket in both.into_iter().flatten() {
            counted(&datagrams, move || socket.recv(&mut [0; 64]).is_ok());
        }
        Listener { port, udp, path, name, connections, datagrams }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn datagrams(&self) -> usize {
        self.datagrams.load(Ordering::SeqCst)
    }
}

fn counted(count: &Arc<AtomicUsize>, wait: impl Fn() -> bool + Send + 'static) {
    let count = Arc::clone(count);
    std::thread::spawn(move || {
        while wait() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
}

/// A process that does nothing, and must live.
pub(crate) struct Victim(Child);

impl Victim {
    pub(crate) fn new() -> Victim {
        Victim(Command::new("sleep").arg("600").spawn().expect("sleep runs"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn lives(&self) -> bool {
        is_alive(self.pid())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_listener_notices_everybody() {
    use super::host::{AFTERMATH, within};
    let folder = tempfile::tempdir().expect("a directory");
    let listener = Listener::new(folder.path());
    std::net::TcpStream::connect(("127.0.0.1", listener.port)).expect("connected");
    std::os::unix::net::UnixStream::connect(&listener.path).expect("connected");
    let address = SocketAddr::from_abstract_name(&listener.name).expect("a name");
    std::os::unix::net::UnixStream::connect_addr(&address).expect("connected");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
    sender.send_to(b"x", ("127.0.0.1", listener.udp)).expect("sent");
    assert!(within(AFTERMATH, || listener.connections() == 3 && listener.datagrams() == 1));
}
