//! Listens, and gives each connection its bounds.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use crate::checks::LocalEnd;
use crate::edge::{HttpEdge, Peer};
use crate::error::HttpError;
use crate::io::BoundedIo;
use crate::settings::{HttpSettings, TlsFiles};

/// Maximum number of connections of all clients together, and of refusals that are being written.
const MAX_CONNECTIONS: usize = 4_096;
const MAX_REFUSALS: usize = 256;
const MAX_HEADERS: usize = 100;
/// Longer heads are refused while they are read; `checks` has a lower bound.
const MAX_HEAD_BYTES: usize = 256 << 10;
/// The pause after a failed accept, for example because no descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A bound address.
pub struct Listener {
    socket: Socket,
    tls: Option<TlsAcceptor>,
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket. Removed on drop.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen on {0}")]
    Bind(String, #[source] io::Error),
    #[error(
        "{0} can be reached from other machines, so it needs TLS: set `http.tls-certificate` and \
         `http.tls-key`, or add --allow-plain-http if a proxy in front of it does TLS"
    )]
    Plain(SocketAddr),
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Tls(PathBuf, String),
}

impl Listener {
    pub async fn bind_tcp(
        address: SocketAddr,
        settings: &HttpSettings,
    ) -> Result<Listener, ListenError> {
        let tls = settings.tls.as_ref().map(read_tls).transpose()?;
        if !address.ip().is_loopback() && tls.is_none() && !settings.allow_plain {
            return Err(ListenError::Plain(address));
        }
        let bound = TcpListener::bind(address).await;
        let listener = bound.map_err(|error| ListenError::Bind(address.to_string(), error))?;
        Ok(Listener { socket: Socket::Tcp(listener), tls })
    }

    /// Only the user can connect to the socket. The file of a server that has died is replaced.
    pub fn bind_unix(path: &Path) -> Result<Listener, ListenError> {
        let error = |error| ListenError::Bind(path.display().to_string(), error);
        let is_socket =
            std::fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
        if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
            std::fs::remove_file(path).map_err(error)?;
        }
        let listener = UnixListener::bind(path).map_err(error)?;
        let file = SocketFile(path.to_owned());
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(error)?;
        Ok(Listener { socket: Socket::Unix(listener, file), tls: None })
    }

    /// Returns the address as clients write it.
    pub fn url(&self) -> String {
        match &self.socket {
            Socket::Tcp(listener) => {
                let scheme = if self.tls.is_some() { "https" } else { "http" };
                let address = listener.local_addr().map(|address| address.to_string());
                format!("{scheme}://{}", address.unwrap_or_default())
            }
            Socket::Unix(_, file) => format!("unix:{}", file.0.display()),
        }
    }
}

fn read_tls(files: &TlsFiles) -> Result<TlsAcceptor, ListenError> {
    let at = |path: &Path, error: &dyn std::fmt::Display| {
        ListenError::Tls(path.to_owned(), error.to_string())
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| at(&files.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| at(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| at(&files.certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The connections of all listeners.
#[derive(Clone)]
struct Connections {
    edge: Arc<HttpEdge>,
    tasks: TaskTracker,
    free: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
}

impl HttpEdge {
    /// Serves all listeners until [`HttpEdge::drain`], and then until every connection is closed.
    pub async fn serve(self: Arc<HttpEdge>, listeners: Vec<Listener>) {
        let connections = Connections {
            edge: Arc::clone(&self),
            tasks: TaskTracker::new(),
            free: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
        };
        let accepting = listeners.into_iter().map(|listener| {
            let connections = connections.clone();
            async move {
                let draining = connections.edge.draining.clone();
                draining.run_until_cancelled(connections.accept(listener)).await;
            }
        });
        futures::future::join_all(accepting).await;
        connections.tasks.close();
        connections.tasks.wait().await;
    }
}

impl Connections {
    async fn accept(&self, listener: Listener) {
        loop {
            let accepted = match &listener.socket {
                Socket::Tcp(tcp) => self.accept_tcp(tcp, listener.tls.as_ref()).await,
                Socket::Unix(unix, _) => unix.accept().await.map(|(stream, _)| {
                    let local = LocalEnd { address: None, is_tls: false };
                    self.start(stream, Peer { address: None, local }, None);
                }),
            };
            if let Err(error) = accepted {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    async fn accept_tcp(&self, tcp: &TcpListener, tls: Option<&TlsAcceptor>) -> io::Result<()> {
        let (stream, address) = tcp.accept().await?;
        let local = stream.local_addr()?;
        let _ = stream.set_nodelay(true);
        let local = LocalEnd { address: Some(local), is_tls: tls.is_some() };
        self.start(stream, Peer { address: Some(address.ip()), local }, tls.cloned());
        Ok(())
    }

    /// Serves the connection in its own task, or refuses it.
    fn start(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
        tls: Option<TlsAcceptor>,
    ) {
        let settings = &self.edge.settings;
        let io = BoundedIo::new(stream, settings.write_timeout);
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else { return };
        let is_proxy = peer.address.is_some_and(|address| settings.is_trusted_proxy(address));
        let guard = match is_proxy {
            true => None,
            false => match self.edge.peers.enter(peer.address) {
                Some(guard) => Some(guard),
                None => return self.refuse(io, permit, tls.is_some()),
            },
        };
        let edge = Arc::clone(&self.edge);
        self.tasks.spawn(async move {
            let _held = (permit, guard);
            let Some(tls) = tls else { return serve_connection(&edge, peer, io).await };
            let timeout = edge.settings.header_timeout;
            if let Ok(Ok(stream)) = tokio::time::timeout(timeout, tls.accept(io)).await {
                serve_connection(&edge, peer, stream).await;
            }
        });
    }

    /// Refuses a connection of an address that has too many.
    fn refuse(
        &self,
        mut io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        permit: OwnedSemaphorePermit,
        is_tls: bool,
    ) {
        let Ok(turn) = Arc::clone(&self.refusals).try_acquire_owned() else { return };
        if is_tls {
            return;
        }
        self.tasks.spawn(async move {
            let _held = (permit, turn);
            let _ = io.write_all(HttpError::Connections.to_raw_response().as_bytes()).await;
            let _ = io.shutdown().await;
        });
    }
}

async fn serve_connection(
    edge: &Arc<HttpEdge>,
    peer: Peer,
    io: impl AsyncRead + AsyncWrite + Unpin,
) {
    let service = service_fn(|request| {
        let edge = Arc::clone(edge);
        async move { Ok::<_, Infallible>(edge.answer(peer, request).await) }
    });
    let mut builder = http1::Builder::new();
    // THREAT[HTTP-2]: the head of a request must arrive in time.
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(edge.settings.header_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = edge.draining.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}
