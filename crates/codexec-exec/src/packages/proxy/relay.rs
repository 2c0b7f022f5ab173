//! Copies bytes between the client and the server.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::ProxyState;
use super::request::HttpHead;

const READ_BYTES: usize = 64 << 10;

/// Copies in both directions until both sides are done.
pub(super) async fn relay(
    client: &mut TcpStream,
    server: &mut TcpStream,
    state: &ProxyState,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = copy_bytes(&mut from_client, &mut to_server, u64::MAX, state);
    let down = copy_bytes(&mut from_server, &mut to_client, u64::MAX, state);
    tokio::try_join!(up, down).map(drop)
}

/// THREAT[PKG-3]: ends when a side neither sends nor receives for the idle timeout.
async fn copy_bytes(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut left: u64,
    state: &ProxyState,
) -> io::Result<()> {
    let idle = state.reach.idle;
    let mut bytes = Vec::with_capacity(READ_BYTES);
    while left > 0 {
        bytes.clear();
        let count = timeout(idle, from.read_buf(&mut bytes)).await??;
        if count == 0 {
            break;
        }
        let count = usize::try_from(left).map_or(count, |left| count.min(left));
        left -= count as u64;
        state.count_bytes(count)?;
        timeout(idle, to.write_all(bytes.get(..count).unwrap_or_default())).await??;
    }
    timeout(idle, to.shutdown()).await?
}

/// Sends a plain request and copies its response. The response head always says that the connection
/// is closed, whatever the server wrote, so that no second request follows.
pub(super) async fn forward_fetch(
    request: &str,
    client: &mut TcpStream,
    server: &mut TcpStream,
    state: &ProxyState,
) -> io::Result<()> {
    let idle = state.reach.idle;
    state.count_bytes(request.len())?;
    timeout(idle, server.write_all(request.as_bytes())).await??;
    let head = timeout(idle, HttpHead::read(server)).await??;
    let head = head.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    let headers = head.headers().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut text = head.lines.first().cloned().unwrap_or_default() + "\r\n";
    let mut left = u64::MAX;
    for (name, line, value) in headers {
        match name.as_str() {
            "connection" | "keep-alive" | "proxy-connection" => continue,
            "content-length" => left = value.parse().map_err(io::Error::other)?,
            _ => {}
        }
        text.push_str(line);
        text.push_str("\r\n");
    }
    if request.starts_with("HEAD ") {
        left = 0;
    }
    text.push_str("Connection: close\r\n\r\n");
    let rest = usize::try_from(left).map_or(head.rest.len(), |left| left.min(head.rest.len()));
    state.count_bytes(text.len() + rest)?;
    timeout(idle, client.write_all(text.as_bytes())).await??;
    let first = head.rest.get(..rest).unwrap_or_default();
    timeout(idle, client.write_all(first)).await??;
    let left = if left == u64::MAX { left } else { left - rest as u64 };
    copy_bytes(server, client, left, state).await
}
