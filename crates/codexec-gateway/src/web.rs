//! The HTTP clients for all outgoing requests. TLS is rustls with ring. No response is
//! decompressed, no cookie is stored, only the settings' proxies are used, and no redirect leaves
//! the origin of the request.

use std::{
    net::IpAddr,
    sync::{Arc, Once},
    time::Duration,
};

use reqwest::{
    Client, ClientBuilder, NoProxy, Proxy, Response,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::{Attempt, Policy},
};
use url::{Host, Url};

use crate::GatewaySettings;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_REDIRECTS: usize = 3;
const HEADER_BYTES: u32 = 64 << 10;
/// Hosts that are never reached through a proxy.
const LOCAL_HOSTS: &str = "localhost,127.0.0.0/8,::1";

/// Builds a client for URLs that the user has configured.
pub(crate) fn build_client(settings: &GatewaySettings) -> reqwest::Result<Client> {
    client_builder(settings)?.build()
}

/// Builds a client for URLs that the server at `base` has sent.
///
/// THREAT[REM-3]: a remote server cannot make us send requests to this machine or its network,
/// neither by address nor by a name that resolves to one.
pub(crate) fn build_restricted_client(
    settings: &GatewaySettings,
    base: &Url,
) -> reqwest::Result<Client> {
    if is_local_network(base) {
        return build_client(settings);
    }
    client_builder(settings)?.dns_resolver(Arc::new(PublicResolver)).build()
}

fn client_builder(settings: &GatewaySettings) -> reqwest::Result<ClientBuilder> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails if this process has already installed a provider, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let mut builder = Client::builder()
        .user_agent(concat!("codexec/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEP_ALIVE)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .http2_max_header_list_size(HEADER_BYTES)
        .redirect(Policy::custom(follow_within_origin))
        .referer(false)
        // Otherwise reqwest reads proxies from the environment.
        .no_proxy();
    let variable = |key: &str| {
        let found = settings.env.iter().find(|(name, value)| name == key && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    };
    let except = [LOCAL_HOSTS, variable("NO_PROXY").unwrap_or_default()].join(",");
    if let Some(proxy) = variable("HTTP_PROXY") {
        builder = builder.proxy(Proxy::http(proxy)?.no_proxy(NoProxy::from_string(&except)));
    }
    if let Some(proxy) = variable("HTTPS_PROXY") {
        builder = builder.proxy(Proxy::https(proxy)?.no_proxy(NoProxy::from_string(&except)));
    }
    Ok(builder)
}

/// THREAT[REM-2]: a redirect takes credentials and requests to no other origin.
fn follow_within_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let is_same =
        attempt.previous().first().is_some_and(|first| is_same_origin(first, attempt.url()));
    if is_same && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

pub(crate) fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin() && one.origin().is_tuple()
}

/// Returns true if the host is this machine, by name or address.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns true if the host is this machine or an address of its network. Resolves no names.
fn is_local_network(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(_)) | None => is_loopback(url),
        Some(Host::Ipv4(address)) => !is_public(address.into()),
        Some(Host::Ipv6(address)) => !is_public(address.into()),
    }
}

/// Returns true if a server at `base` may send us to `url`: over TLS, or without it if both are on
/// this machine.
pub(crate) fn is_allowed_target(base: &Url, url: &Url) -> bool {
    let is_address_allowed = match url.host() {
        Some(Host::Domain(_)) => !is_loopback(url) || is_loopback(base),
        Some(Host::Ipv4(address)) => is_public(address.into()) || is_local_network(base),
        Some(Host::Ipv6(address)) => is_public(address.into()) || is_local_network(base),
        None => false,
    };
    let is_scheme_allowed = url.scheme() == "https"
        || (url.scheme() == "http" && is_loopback(url) && is_loopback(base));
    is_address_allowed && is_scheme_allowed && url.username().is_empty() && url.password().is_none()
}

/// Returns true for a globally routable address.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let is_special = v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_multicast()
                || v4.is_documentation()
                || matches!((a, b), (0, _) | (100, 64..=127) | (198, 18 | 19) | (240.., _));
            !is_special
        }
        IpAddr::V6(v6) => match v6.segments() {
            // Addresses that embed an IPv4 address: mapped, compatible, NAT64; below, 6to4.
            [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                let [a, b] = high.to_be_bytes();
                let [c, d] = low.to_be_bytes();
                is_public(IpAddr::from([a, b, c, d]))
            }
            [0x2002, high, low, ..] => {
                let [a, b] = high.to_be_bytes();
                let [c, d] = low.to_be_bytes();
                is_public(IpAddr::from([a, b, c, d]))
            }
            // Global unicast, without Teredo and documentation.
            [first, second, ..] => {
                (first & 0xe000) == 0x2000 && !matches!((first, second), (0x2001, 0 | 0xdb8))
            }
        },
    }
}

/// A DNS resolver that returns public addresses only.
struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let public: Vec<_> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(format!("{host} has no public address").into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// The reason why a response body could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// Holds the beginning of the body.
    #[error("the response is too long")]
    TooLong(Vec<u8>),
    #[error("the connection broke")]
    Broken,
}

/// Reads the whole body, up to `max_bytes`.
pub(crate) async fn read_body(
    mut response: Response,
    max_bytes: usize,
) -> Result<Vec<u8>, BodyError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| BodyError::Broken)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > max_bytes {
            bytes.truncate(max_bytes.min(4 << 10));
            return Err(BodyError::TooLong(bytes));
        }
    }
    Ok(bytes)
}

/// Describes an error without the URL, which may contain secrets.
pub(crate) fn describe_error(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "the request timed out".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let cause = codexec_types::cut_text(&cause.to_string(), 200);
    match error.is_connect() {
        true => {
            format!("no connection: {cause}; check that the server runs and that its URL is right")
        }
        false => format!("the connection broke: {cause}"),
    }
}

#[cfg(test)]
mod tests;
