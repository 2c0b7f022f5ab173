use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of the HTTP edge.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Maximum number of connections of one address.
    pub connections_per_peer: usize,
    /// Names under which clients reach the server, besides its own addresses.
    pub hosts: Vec<String>,
    /// Balancers that name the client in `X-Forwarded-For`.
    pub trusted_proxies: Vec<Network>,
    /// The most requests of one token in any 60 seconds.
    pub requests_per_minute: u32,
    pub max_body_bytes: usize,
    /// How long a client may take to send the head of a request, or nothing.
    pub header_timeout: Duration,
    /// How long a client may take to send the whole body.
    pub body_timeout: Duration,
    /// How long a client may take no bytes of a response.
    pub write_timeout: Duration,
    /// How long running requests may take when the server stops.
    pub grace: Duration,
    pub tls: Option<TlsFiles>,
    /// True to serve `/metrics` without a token.
    pub public_metrics: bool,
    /// True to listen beyond loopback without TLS.
    pub allow_plain: bool,
}

/// The files of a certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// A range of addresses, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Default for HttpSettings {
    fn default() -> HttpSettings {
        HttpSettings {
            connections_per_peer: 64,
            hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            requests_per_minute: 30_000,
            max_body_bytes: 8 << 20,
            header_timeout: Duration::from_secs(20),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(8),
            tls: None,
            public_metrics: false,
            allow_plain: false,
        }
    }
}

impl HttpSettings {
    pub(crate) fn is_trusted_proxy(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(address))
    }
}

impl Network {
    /// Parses an address, or an address with the number of its leading bits.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let max = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(max);
        (bits <= max).then_some(Network { address, bits })
    }

    fn contains(self, other: IpAddr) -> bool {
        match (self.address, other.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - self.bits;
                own.to_bits().checked_shr(shift) == other.to_bits().checked_shr(shift)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - self.bits;
                own.to_bits().checked_shr(shift) == other.to_bits().checked_shr(shift)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_parsed_and_matched() {
        let has = |network: &str, address: &str| {
            Network::parse(network).expect("a network").contains(address.parse().expect("one"))
        };
        assert!(has("10.0.0.0/8", "10.200.1.1") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("127.0.0.1", "127.0.0.1") && !has("127.0.0.1", "127.0.0.2"));
        assert!(has("0.0.0.0/0", "1.2.3.4") && !has("0.0.0.0/0", "::1"));
        assert!(has("fd00::/8", "fd12::1") && has("10.0.0.0/8", "::ffff:10.0.0.1"));
        for wrong in ["", "10.0.0.0/33", "host", "10.0.0.0/x"] {
            assert_eq!(Network::parse(wrong), None, "{wrong}");
        }
    }
}
