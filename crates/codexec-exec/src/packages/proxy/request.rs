//! Parses requests to the proxy. They are untrusted: code of a package may have written them. The
//! forwarded request is serialised anew from the parsed parts.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::packages::address::IndexHost;

/// Limits of a head: total bytes, and lines.
const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_LINES: usize = 64;

/// The lines of a request or response up to its body.
#[derive(Debug)]
pub(super) struct HttpHead {
    pub(super) lines: Vec<String>,
    /// Bytes after the head that were read already.
    pub(super) rest: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyRequest {
    /// A tunnel, for https.
    Connect(IndexHost),
    Fetch(FetchRequest),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FetchRequest {
    method: &'static str,
    host: IndexHost,
    /// Host and port as the client wrote them, and the path.
    authority: String,
    path: String,
    headers: Vec<String>,
}

/// Hop-by-hop headers, and headers meant for us. `host` is written anew.
const NOT_PASSED_ON: &[&str] = &[
    "connection",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

impl HttpHead {
    /// Reads a head. Returns `None` at end of file.
    pub(super) async fn read(stream: &mut TcpStream) -> io::Result<Option<HttpHead>> {
        let bad = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        let mut bytes = Vec::new();
        loop {
            if stream.read_buf(&mut bytes).await? == 0 {
                return if bytes.is_empty() {
                    Ok(None)
                } else {
                    bad("the request or response head is incomplete")
                };
            }
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let rest = bytes.split_off(end + 4);
                bytes.truncate(end);
                return match HttpHead::split_lines(bytes) {
                    Some(lines) => Ok(Some(HttpHead { lines, rest })),
                    None => bad("not a valid HTTP head"),
                };
            }
            if bytes.len() > MAX_HEAD_BYTES {
                return bad("the HTTP head is too long");
            }
        }
    }

    /// Splits a head into lines.
    ///
    /// THREAT[PKG-2]: lines end in one way only, and contain nothing that another parser could take
    /// for a line end.
    fn split_lines(bytes: Vec<u8>) -> Option<Vec<String>> {
        let text = String::from_utf8(bytes).ok()?;
        let lines: Vec<String> = text.split("\r\n").map(str::to_owned).collect();
        let is_plain = |b: u8| (b' '..=b'~').contains(&b) || b == b'\t';
        let is_fine =
            lines.len() <= MAX_LINES && lines.iter().all(|line| line.bytes().all(is_plain));
        is_fine.then_some(lines)
    }

    /// Returns the header lines as (lower-case name, line, value), or `None` if one is malformed.
    pub(super) fn headers(&self) -> Option<Vec<(String, &str, &str)>> {
        let header = |line: &'_ String| -> Option<usize> {
            let colon = line.find(':')?;
            let name = line.get(..colon)?;
            let is_token = |b: u8| b.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&b);
            (!name.is_empty() && name.bytes().all(is_token)).then_some(colon)
        };
        let read = |line| {
            let colon = header(line)?;
            let (name, value) = line.split_at(colon);
            let value = value.strip_prefix(':').unwrap_or_default().trim();
            Some((name.to_ascii_lowercase(), line.as_str(), value))
        };
        self.lines.iter().skip(1).map(read).collect()
    }
}

impl ProxyRequest {
    pub(super) fn parse(head: &HttpHead) -> Result<ProxyRequest, &'static str> {
        let first = head.lines.first().map(String::as_str).unwrap_or_default();
        let parts: Vec<&str> = first.split(' ').collect();
        let unclear = "the request line is not a method, a URL and a version";
        let &[method, target, version] = parts.as_slice() else { return Err(unclear) };
        if first.contains('\t') {
            return Err(unclear);
        }
        if !["HTTP/1.1", "HTTP/1.0"].contains(&version) {
            return Err("only HTTP/1 is supported");
        }
        let headers = head.headers().ok_or("a header line is malformed")?;
        let has_body = headers.iter().any(|(name, _, value)| {
            name == "transfer-encoding" || (name == "content-length" && *value != "0")
        });
        // One request for each connection: bytes after it are refused.
        if has_body || !head.rest.is_empty() {
            return Err("requests with a body or pipelined requests are not supported");
        }
        let method = match method {
            "CONNECT" => {
                let host = IndexHost::parse_canonical(target, 0).filter(|host| host.port() != 0);
                return host.map(ProxyRequest::Connect).ok_or("CONNECT takes a host and a port");
            }
            "GET" => "GET",
            "HEAD" => "HEAD",
            _ => return Err("only CONNECT, GET and HEAD are supported"),
        };
        let unread = "the URL is not like http://host/path";
        let rest = target.strip_prefix("http://").ok_or(unread)?;
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        let host = IndexHost::parse_canonical(authority, 80).ok_or(unread)?;
        let passed = headers.iter().filter(|(name, ..)| !NOT_PASSED_ON.contains(&name.as_str()));
        let headers = passed.map(|(_, line, _)| (*line).to_owned()).collect();
        let (authority, path) = (authority.to_ascii_lowercase(), path.to_owned());
        Ok(ProxyRequest::Fetch(FetchRequest { method, host, authority, path, headers }))
    }

    pub(super) fn host(&self) -> &IndexHost {
        match self {
            ProxyRequest::Connect(host) => host,
            ProxyRequest::Fetch(fetch) => &fetch.host,
        }
    }
}

impl FetchRequest {
    /// Returns the request for the server. For another proxy, with the absolute URL and our
    /// authorization header.
    pub(super) fn to_server_text(&self, proxied: Option<&str>) -> String {
        let FetchRequest { method, authority, path, .. } = self;
        let origin = if proxied.is_some() { format!("http://{authority}") } else { String::new() };
        let mut text = format!("{method} {origin}{path} HTTP/1.1\r\nHost: {authority}\r\n");
        for line in &self.headers {
            text.push_str(line);
            text.push_str("\r\n");
        }
        text + proxied.unwrap_or_default() + "Connection: close\r\n\r\n"
    }
}
