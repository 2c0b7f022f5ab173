//! THREAT[PKG-1]: the only network access of an installer's sandbox. Connects to the hosts of one
//! index and to nothing else, resolves names itself, and counts bytes.

mod relay;
mod request;
mod route;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::address::IndexHost;
use relay::{forward_fetch, relay};
use request::{HttpHead, ProxyRequest};
pub(super) use route::ProxyRoute;

/// Maximum number of an installer's concurrent connections.
const MAX_CONNECTIONS: usize = 64;
/// Maximum number of refused hosts that are remembered.
const MAX_REFUSED: usize = 8;

/// The hosts that an installer may reach, and the limits.
#[derive(Clone, Debug)]
pub(super) struct ProxyPolicy {
    pub(super) hosts: Vec<IndexHost>,
    pub(super) route: ProxyRoute,
    /// Limit of all bytes in both directions together.
    pub(super) max_bytes: u64,
    /// Timeout for a request to arrive, and for a connection to be made.
    pub(super) patience: Duration,
    /// Idle timeout of a connection.
    pub(super) idle: Duration,
}

/// The proxy's own observations, independent of the installer's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProxyObservations {
    /// True if any allowed host was reached.
    pub(super) has_reached: bool,
    pub(super) refused: Vec<String>,
    /// A host that could not be reached, and why.
    pub(super) unreachable: Option<(String, String)>,
    pub(super) is_too_much: bool,
}

/// A running proxy. Dropping this stops it.
pub(super) struct Proxy {
    task: JoinHandle<()>,
    state: Arc<ProxyState>,
}

struct ProxyState {
    reach: ProxyPolicy,
    seen: Mutex<ProxyObservations>,
    bytes: AtomicU64,
}

impl Proxy {
    pub(super) fn start(listener: TcpListener, reach: ProxyPolicy) -> Proxy {
        let state =
            Arc::new(ProxyState { reach, seen: Mutex::default(), bytes: AtomicU64::new(0) });
        Proxy { task: tokio::spawn(accept_connections(listener, Arc::clone(&state))), state }
    }

    pub(super) fn observations(&self) -> ProxyObservations {
        self.state.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept_connections(listener: TcpListener, state: Arc<ProxyState>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Aborted together with this task.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((mut client, _)) = accepted else {
                    // The installer's network namespace is gone, or we are out of file descriptors.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let state = Arc::clone(&state);
                let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
                    let full = http_response(503, "too many connections at once");
                    let _ = client.try_write(full.as_bytes());
                    continue;
                };
                connections.spawn(async move {
                    if let Err(refusal) = serve(&mut client, &state).await {
                        let patience = state.reach.patience;
                        let _ = timeout(patience, client.write_all(refusal.as_bytes())).await;
                        let _ = timeout(patience, client.shutdown()).await;
                    }
                    drop(permit);
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection with one request. The error is an HTTP response for the client.
async fn serve(client: &mut TcpStream, state: &ProxyState) -> Result<(), String> {
    let bad = |why: &str| http_response(400, why);
    let head = timeout(state.reach.patience, HttpHead::read(client)).await;
    let head = match head {
        Ok(Ok(Some(head))) => head,
        Ok(Ok(None)) => return Ok(()),
        Ok(Err(why)) => return Err(bad(&why.to_string())),
        Err(_) => return Err(http_response(408, "the request did not arrive in time")),
    };
    let request = ProxyRequest::parse(&head).map_err(bad)?;
    let host = request.host();
    if !state.reach.hosts.contains(host) {
        state.record(|seen| {
            let name = host.to_string();
            if seen.refused.len() < MAX_REFUSED && !seen.refused.contains(&name) {
                seen.refused.push(name);
            }
        });
        return Err(http_response(403, &format!("{host} is not a host of the configured index")));
    }
    let dialled = timeout(state.reach.patience, state.reach.route.dial(&request)).await;
    let dialled = dialled.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let mut server = match dialled {
        Ok(server) => server,
        Err(why) => {
            state.record(|seen| seen.unreachable = Some((host.to_string(), why.to_string())));
            return Err(http_response(502, &format!("{host} cannot be reached: {why}")));
        }
    };
    state.record(|seen| seen.has_reached = true);
    let exchanged = match &request {
        ProxyRequest::Connect(_) => {
            let opened = client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
            if opened.is_ok() { relay(client, &mut server, state).await } else { opened }
        }
        ProxyRequest::Fetch(fetch) => {
            let text = fetch.to_server_text(state.reach.route.authorization_for(host));
            forward_fetch(&text, client, &mut server, state).await
        }
    };
    // Part of a response may have been sent already, so no error response follows.
    if let Err(error) = exchanged {
        tracing::debug!(%host, %error, "an installer's connection broke");
    }
    Ok(())
}

impl ProxyState {
    fn record(&self, note: impl FnOnce(&mut ProxyObservations)) {
        note(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// THREAT[PKG-3]: limits the transferred bytes.
    fn count_bytes(&self, bytes: usize) -> io::Result<()> {
        let before = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if before + bytes as u64 > self.reach.max_bytes {
            self.record(|seen| seen.is_too_much = true);
            return Err(io::Error::other("more bytes than the limit for downloads"));
        }
        Ok(())
    }
}

fn http_response(status: u16, text: &str) -> String {
    let reason = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        408 => "Request Timeout",
        502 => "Bad Gateway",
        _ => "Service Unavailable",
    };
    let length = text.len() + 1;
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}\n"
    )
}

#[cfg(test)]
mod tests;
