//! The one way out to the network. TLS is rustls with ring. Nothing is unpacked, no cookie is
//! kept, no proxy is taken but the settings', and no redirect leaves the origin it was asked at.

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

use crate::Settings;

const CONNECT: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_secs(60);
const REDIRECTS: usize = 3;
const HEADER_BYTES: u32 = 64 << 10;
/// What never goes through a proxy.
const NEAR: &str = "localhost,127.0.0.0/8,::1";

/// For places that the user has named.
pub(crate) fn client(settings: &Settings) -> reqwest::Result<Client> {
    builder(settings)?.build()
}

/// For places that a server has named.
///
/// THREAT[REM-3]: a server that is not on this machine cannot make us ask this machine or its
/// network, neither by an address nor by a name that means one.
pub(crate) fn distant_client(settings: &Settings, base: &Url) -> reqwest::Result<Client> {
    if is_near(base) {
        return client(settings);
    }
    builder(settings)?.dns_resolver(Arc::new(PublicNames)).build()
}

fn builder(settings: &Settings) -> reqwest::Result<ClientBuilder> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // It is there already when somebody else in this process has chosen it.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let mut builder = Client::builder()
        .user_agent(concat!("codexec/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .tcp_keepalive(KEEP_ALIVE)
        .pool_idle_timeout(IDLE)
        .http2_max_header_list_size(HEADER_BYTES)
        .redirect(Policy::custom(within_origin))
        .referer(false)
        // Else the environment is read behind our back.
        .no_proxy();
    let variable = |wanted: &str| {
        let found = settings.env.iter().find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    };
    let except = [NEAR, variable("NO_PROXY").unwrap_or_default()].join(",");
    if let Some(proxy) = variable("HTTP_PROXY") {
        builder = builder.proxy(Proxy::http(proxy)?.no_proxy(NoProxy::from_string(&except)));
    }
    if let Some(proxy) = variable("HTTPS_PROXY") {
        builder = builder.proxy(Proxy::https(proxy)?.no_proxy(NoProxy::from_string(&except)));
    }
    Ok(builder)
}

/// THREAT[REM-2]: a redirect takes credentials, and what is asked, nowhere else.
fn within_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let is_same = attempt.previous().first().is_some_and(|first| same_origin(first, attempt.url()));
    if is_same && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
}

pub(crate) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin() && one.origin().is_tuple()
}

/// This machine, by name or address.
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

/// This machine or its own network, as far as the URL itself says.
fn is_near(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(_)) | None => is_loopback(url),
        Some(Host::Ipv4(address)) => !is_public(address.into()),
        Some(Host::Ipv6(address)) => !is_public(address.into()),
    }
}

/// Whether a server at `base` may send us to `url`: over TLS, or to this machine when it is on
/// this machine itself.
pub(crate) fn may_send_to(base: &Url, url: &Url) -> bool {
    let is_address_fine = match url.host() {
        Some(Host::Domain(_)) => !is_loopback(url) || is_loopback(base),
        Some(Host::Ipv4(address)) => is_public(address.into()) || is_near(base),
        Some(Host::Ipv6(address)) => is_public(address.into()) || is_near(base),
        None => false,
    };
    let is_scheme_fine = url.scheme() == "https"
        || (url.scheme() == "http" && is_loopback(url) && is_loopback(base));
    is_address_fine && is_scheme_fine && url.username().is_empty() && url.password().is_none()
}

/// An address that means the same place to everybody.
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
            // Addresses that have an IPv4 address in them: mapped, compatible, NAT64, 6to4.
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

/// Names that mean a place on our own network mean nothing.
struct PublicNames;

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let public: Vec<_> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(format!("{host} is not a public place").into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Why a body was not had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// With as much as there was.
    #[error("it is too long")]
    TooLong(Vec<u8>),
    #[error("the connection broke")]
    Broken,
}

/// The whole body, if it is not too long.
pub(crate) async fn body(mut response: Response, max_bytes: usize) -> Result<Vec<u8>, BodyError> {
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

/// What went wrong on the way, in words, without the address and what it may carry.
pub(crate) fn why(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let cause = crate::clean::cut(&cause.to_string(), 200);
    match error.is_connect() {
        true => format!("no connection: {cause}; see that it runs, and that its address is right"),
        false => format!("the connection broke: {cause}"),
    }
}

#[cfg(test)]
mod tests;
