//! THREAT[PKG-1]: the only network access of an installer's sandbox. Connects to the hosts of one
//! index and to nothing else, resolves names itself, and counts bytes.

mod relay;
mod request;
mod way;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::address::Host;
use relay::{fetch, relay};
use request::{Head, Request};
pub(super) use way::Way;

/// Maximum number of an installer's concurrent connections.
const MAX_CONNECTIONS: usize = 64;
/// Maximum number of refused hosts that are remembered.
const MAX_REFUSED: usize = 8;

/// The hosts that an installer may reach, and the limits.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    pub(super) hosts: Vec<Host>,
    pub(super) way: Way,
    /// Limit of all bytes in both directions together.
    pub(super) max_bytes: u64,
    /// Timeout for a request to arrive, and for a connection to be made.
    pub(super) patience: Duration,
    /// Idle timeout of a connection.
    pub(super) idle: Duration,
}

/// The proxy's own observations, independent of the installer's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
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
    all: Arc<All>,
}

struct All {
    reach: Reach,
    seen: Mutex<Seen>,
    bytes: AtomicU64,
}

impl Proxy {
    pub(super) fn start(listener: TcpListener, reach: Reach) -> Proxy {
        let all = Arc::new(All { reach, seen: Mutex::default(), bytes: AtomicU64::new(0) });
        Proxy { task: tokio::spawn(accept(listener, Arc::clone(&all))), all }
    }

    pub(super) fn seen(&self) -> Seen {
        self.all.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, all: Arc<All>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
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
                let all = Arc::clone(&all);
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                    let full = answer(503, "too many connections at once");
                    let _ = client.try_write(full.as_bytes());
                    continue;
                };
                connections.spawn(async move {
                    if let Err(refusal) = serve(&mut client, &all).await {
                        let _ = timeout(all.reach.patience, client.write_all(refusal.as_bytes())).await;
                        let _ = timeout(all.reach.patience, client.shutdown()).await;
                    }
                    drop(place);
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection with one request. The error is an HTTP response for the client.
async fn serve(client: &mut TcpStream, all: &All) -> Result<(), String> {
    let bad = |why: &str| answer(400, why);
    let head = timeout(all.reach.patience, Head::read(client)).await;
    let head = match head {
        Ok(Ok(Some(head))) => head,
        Ok(Ok(None)) => return Ok(()),
        Ok(Err(why)) => return Err(bad(&why.to_string())),
        Err(_) => return Err(answer(408, "the request did not come in time")),
    };
    let request = Request::parse(&head).map_err(bad)?;
    let host = request.host();
    if !all.reach.hosts.contains(host) {
        all.note(|seen| {
            let name = host.to_string();
            if seen.refused.len() < MAX_REFUSED && !seen.refused.contains(&name) {
                seen.refused.push(name);
            }
        });
        return Err(answer(403, &format!("{host} is not a host of the configured index")));
    }
    let dialled = timeout(all.reach.patience, all.reach.way.dial(&request)).await;
    let dialled = dialled.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let mut server = match dialled {
        Ok(server) => server,
        Err(why) => {
            all.note(|seen| seen.unreachable = Some((host.to_string(), why.to_string())));
            return Err(answer(502, &format!("{host} cannot be reached: {why}")));
        }
    };
    all.note(|seen| seen.has_reached = true);
    let exchanged = match &request {
        Request::Connect(_) => {
            let opened = client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
            if opened.is_ok() { relay(client, &mut server, all).await } else { opened }
        }
        Request::Fetch(wanted) => {
            let text = wanted.for_server(all.reach.way.authorization_for(host));
            fetch(&text, client, &mut server, all).await
        }
    };
    // Part of a response may have been sent already, so no error response follows.
    if let Err(error) = exchanged {
        tracing::debug!(%host, %error, "a connection of an installer broke");
    }
    Ok(())
}

impl All {
    fn note(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// THREAT[PKG-3]: limits the transferred bytes.
    fn count(&self, bytes: usize) -> io::Result<()> {
        let before = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if before + bytes as u64 > self.reach.max_bytes {
            self.note(|seen| seen.is_too_much = true);
            return Err(io::Error::other("more than may be fetched"));
        }
        Ok(())
    }
}

fn answer(status: u16, text: &str) -> String {
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
