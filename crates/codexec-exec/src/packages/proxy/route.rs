//! The proxy's own outgoing connections: direct, or through the HTTP proxy of this machine.

use std::io;

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use url::Url;

use super::request::{HttpHead, ProxyRequest};
use crate::packages::address::IndexHost;

#[derive(Clone, Debug, Default)]
pub(in crate::packages) struct ProxyRoute {
    proxy: Option<OutboundProxy>,
    /// The hosts that are connected to directly, in the format of `NO_PROXY`.
    no_proxy: String,
}

#[derive(Clone)]
struct OutboundProxy {
    host: IndexHost,
    /// A complete header line.
    authorization: Option<String>,
}

impl ProxyRoute {
    /// Parses the values of `HTTPS_PROXY` and `NO_PROXY`.
    pub(in crate::packages) fn parse(
        proxy: Option<&str>,
        no_proxy: &str,
    ) -> Result<ProxyRoute, String> {
        let Some(text) = proxy else { return Ok(ProxyRoute::default()) };
        let address = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let wrong = "the proxy in HTTPS_PROXY is not of the form http://host:port";
        let url = Url::parse(&address).map_err(|_| wrong.to_owned())?;
        if url.scheme() != "http" {
            return Err(format!("{wrong}; other kinds are not supported"));
        }
        let name = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(80);
        let host = IndexHost::parse_canonical(&format!("{name}:{port}"), port)
            .ok_or_else(|| wrong.to_owned())?;
        let authorization = url.password().map(|password| {
            let pair = format!("{}:{}", percent_decode(url.username()), percent_decode(password));
            format!("Proxy-Authorization: Basic {}\r\n", BASE64.encode(pair))
        });
        let proxy = Some(OutboundProxy { host, authorization });
        Ok(ProxyRoute { proxy, no_proxy: no_proxy.to_owned() })
    }

    fn proxy_for(&self, host: &IndexHost) -> Option<&OutboundProxy> {
        self.proxy.as_ref().filter(|_| !host.is_listed_in(&self.no_proxy))
    }

    /// Returns the authorization header for a plain request through another proxy; `None` if the
    /// host is connected to directly.
    pub(super) fn authorization_for(&self, host: &IndexHost) -> Option<&str> {
        let proxy = self.proxy_for(host)?;
        Some(proxy.authorization.as_deref().unwrap_or_default())
    }

    pub(super) async fn dial(&self, request: &ProxyRequest) -> io::Result<TcpStream> {
        let host = request.host();
        let Some(proxy) = self.proxy_for(host) else { return connect_to(host).await };
        let mut stream = connect_to(&proxy.host).await?;
        if let ProxyRequest::Connect(_) = request {
            let authorization = proxy.authorization.as_deref().unwrap_or_default();
            let request_text =
                format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n{authorization}\r\n");
            stream.write_all(request_text.as_bytes()).await?;
            let head = HttpHead::read(&mut stream).await?;
            let first = head.and_then(|head| head.lines.into_iter().next()).unwrap_or_default();
            if first.split(' ').nth(1) != Some("200") {
                return Err(io::Error::other(format!(
                    "the proxy {} answered {first:?}",
                    proxy.host
                )));
            }
        }
        Ok(stream)
    }
}

impl std::fmt::Debug for OutboundProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OutboundProxy({})", self.host)
    }
}

async fn connect_to(host: &IndexHost) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host.to_resolve(), host.port())).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Decodes percent-encoding: `%40` is `@`.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let hex = others.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, hex.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = others.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
