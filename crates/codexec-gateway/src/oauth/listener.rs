//! The local HTTP server that receives the browser's redirect at the end of one login.

use std::{io, net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};
use url::Url;

const PATH: &str = "/callback";
const REQUEST_BYTES: usize = 16 << 10;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of connections; browsers open some in advance.
const CONNECTIONS: usize = 16;

pub(super) struct CallbackListener {
    listener: TcpListener,
    port: u16,
}

/// The result in the browser's redirect.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Callback {
    Code {
        code: String,
        issuer: Option<String>,
    },
    /// The authorization server's error.
    Refused(String),
}

impl CallbackListener {
    /// Binds to `port`, or to any free port.
    pub(super) async fn bind(port: Option<u16>) -> io::Result<CallbackListener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        Ok(CallbackListener { listener, port })
    }

    pub(super) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the request that has the right `state`. Any local process can connect; a request
    /// with another `state` gets a 404 and does not end the wait.
    pub(super) async fn wait(self, state: String) -> io::Result<Callback> {
        let (sender, mut callbacks) = mpsc::channel(1);
        let slots = std::sync::Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                Some(callback) = callbacks.recv() => return Ok(callback),
                accepted = self.listener.accept() => accepted,
            };
            let (stream, _) = accepted?;
            let Ok(slot) = slots.clone().try_acquire_owned() else { continue };
            let (sender, state) = (sender.clone(), state.clone());
            tokio::spawn(async move {
                let _slot = slot;
                if let Ok(Ok(Some(callback))) =
                    timeout(REQUEST_TIMEOUT, serve(stream, &state)).await
                {
                    let _ = sender.send(callback).await;
                }
            });
        }
    }
}

async fn serve(mut stream: TcpStream, state: &str) -> io::Result<Option<Callback>> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 2048];
        let length = stream.read(&mut chunk).await?;
        request.extend_from_slice(chunk.get(..length).unwrap_or_default());
        if length == 0 || request.len() > REQUEST_BYTES {
            return Ok(None);
        }
    }
    let callback = parse_callback(&request, state);
    let (status, text) = match &callback {
        Some(Callback::Code { .. }) => {
            ("200 OK", "The login is complete. You can close this page.")
        }
        Some(Callback::Refused(_)) => ("200 OK", "The login was refused. You can close this page."),
        None => ("404 Not Found", "Not found."),
    };
    // The page contains nothing of the request.
    let page = format!("<!doctype html><meta charset=utf-8><title>codexec</title><p>{text}");
    let length = page.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n\
         Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{page}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(callback)
}

fn parse_callback(request: &[u8], state: &str) -> Option<Callback> {
    let line = request.split(|&byte| byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (Some("GET"), Some(target)) = (words.next(), words.next()) else { return None };
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    let only = |name: &str| {
        let mut found = url.query_pairs().filter(|(key, _)| key == name);
        // A repeated parameter is ignored.
        let value = found.next().map(|(_, value)| value.into_owned());
        value.filter(|_| found.next().is_none())
    };
    if url.path() != PATH || only("state").as_deref() != Some(state) {
        return None;
    }
    if let Some(error) = only("error") {
        let more = only("error_description").map(|more| format!(": {more}")).unwrap_or_default();
        return Some(Callback::Refused(format!("{error}{more}")));
    }
    Some(Callback::Code { code: only("code")?, issuer: only("iss") })
}

#[cfg(test)]
mod tests;
