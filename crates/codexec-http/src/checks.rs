//! Checks of the head of a request, and the reading of its body.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use codexec_types::JsonShape;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::error::HttpError;

/// Maximum length of all names and values of headers together.
const MAX_HEADER_BYTES: usize = 32 << 10;
const MAX_URI_BYTES: usize = 8 << 10;
const MAX_SESSION_ID_BYTES: usize = 1 << 10;
/// Maximum nesting of a JSON body.
const MAX_DEPTH: usize = 64;

/// The server's end of a connection; `None` for a Unix socket, which no web page can reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalEnd {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) is_tls: bool,
}

pub(crate) fn check_head(head: &Parts, local: LocalEnd, hosts: &[String]) -> Result<(), HttpError> {
    let session_id = head.headers.get("mcp-session-id");
    if session_id.is_some_and(|id| id.len() > MAX_SESSION_ID_BYTES) {
        return Err(HttpError::SessionId);
    }
    let bytes: usize =
        head.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > MAX_HEADER_BYTES || head.uri.to_string().len() > MAX_URI_BYTES {
        return Err(HttpError::Headers);
    }
    match local.address {
        Some(address) => check_host_and_origin(head, address, local.is_tls, hosts),
        None => Ok(()),
    }
}

/// THREAT[HTTP-1]: a web page reaches a server on this machine by a name that resolves to it, or by
/// a form; both name a host or an origin that is not ours.
fn check_host_and_origin(
    head: &Parts,
    local: SocketAddr,
    is_tls: bool,
    hosts: &[String],
) -> Result<(), HttpError> {
    let is_ours = |authority: &str, is_tls: bool| is_own_authority(authority, local, is_tls, hosts);
    let host = single(&head.headers, HOST).ok_or(HttpError::Host)?;
    let named = head.uri.authority().map(http::uri::Authority::as_str);
    if !is_ours(host, is_tls) || named.is_some_and(|named| !is_ours(named, is_tls)) {
        return Err(HttpError::Host);
    }
    if head.headers.contains_key(ORIGIN) {
        let origin = single(&head.headers, ORIGIN).and_then(|origin| origin.split_once("://"));
        let is_own = match origin {
            Some(("http", authority)) => is_ours(authority, false),
            Some(("https", authority)) => is_ours(authority, true),
            _ => false,
        };
        if !is_own {
            return Err(HttpError::Origin);
        }
    }
    match head.headers.get("sec-fetch-site").map(http::HeaderValue::as_bytes) {
        None | Some(b"none" | b"same-origin") => Ok(()),
        Some(_) => Err(HttpError::Origin),
    }
}

/// Returns true if the authority is exactly one by which this server is meant to be reached.
fn is_own_authority(authority: &str, local: SocketAddr, is_tls: bool, hosts: &[String]) -> bool {
    let authority = authority.to_ascii_lowercase();
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (authority.as_str(), None),
    };
    let is_configured = hosts.iter().any(|host| {
        let host = host.to_ascii_lowercase();
        host == authority || host == name
    });
    let default = if is_tls { 443 } else { 80 };
    let port: Option<u16> = port.map_or(Some(default), |port| port.parse().ok());
    let ip = local.ip().to_canonical();
    let literal = match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let is_loopback = ip.is_loopback() && ["localhost", "127.0.0.1", "[::1]"].contains(&name);
    is_configured || (port == Some(local.port()) && (name == literal || is_loopback))
}

/// Returns the only value of a header.
fn single(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Returns the token of a request. Two different ones are none; a token in the URL never counts.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(AUTHORIZATION).map(|_| {
        let (scheme, token) = single(headers, AUTHORIZATION)?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let key =
        headers.get("x-api-key").map(|_| single(headers, HeaderName::from_static("x-api-key")));
    match (bearer, key) {
        (Some(bearer), Some(key)) if bearer != key => None,
        (Some(token), _) | (None, Some(token)) => token,
        (None, None) => None,
    }
}

/// Returns the client that a trusted proxy names: the last address that is not a proxy itself.
pub(crate) fn forwarded_for(
    headers: &HeaderMap,
    is_proxy: impl Fn(IpAddr) -> bool,
) -> Option<IpAddr> {
    let values = headers.get_all("x-forwarded-for").iter();
    let listed: Vec<&str> =
        values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).collect();
    let addresses = listed.iter().rev().map_while(|text| text.trim().parse::<IpAddr>().ok());
    addresses.into_iter().find(|address| !is_proxy(*address))
}

/// THREAT[HTTP-1]: a form of a web page can send every type but this one.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), HttpError> {
    let mime = single(headers, CONTENT_TYPE).and_then(|value| value.split(';').next());
    match mime.is_some_and(|mime| mime.trim().eq_ignore_ascii_case("application/json")) {
        true => Ok(()),
        false => Err(HttpError::ContentType),
    }
}

/// Reads the whole body.
///
/// THREAT[HTTP-2]: bytes are counted as they arrive, and all of them must arrive in time.
pub(crate) async fn read_body(
    mut body: Incoming,
    max_bytes: usize,
    timeout: Duration,
) -> Result<Bytes, HttpError> {
    let read = async {
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| HttpError::Body)?.into_data() else { continue };
            if data.len() > max_bytes - bytes.len() {
                return Err(HttpError::TooLong(max_bytes));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    };
    tokio::time::timeout(timeout, read).await.unwrap_or(Err(HttpError::SlowBody))
}

/// Checks the shape of a JSON text before anybody parses it.
pub(crate) fn check_json(body: &[u8]) -> Result<(), HttpError> {
    let text = std::str::from_utf8(body).map_err(|_| HttpError::Json)?;
    match JsonShape::of_text(text).depth <= MAX_DEPTH {
        true => Ok(()),
        false => Err(HttpError::Json),
    }
}

#[cfg(test)]
mod tests;
