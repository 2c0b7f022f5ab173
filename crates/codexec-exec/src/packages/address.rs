//! Addresses of package indexes, and the hosts that an installer may reach.

use std::fmt;

use url::Url;

/// The URL of a package index.
#[derive(Clone, PartialEq, Eq)]
pub struct PackageIndex(Url);

/// A host with a port, in its canonical spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHost {
    name: String,
    port: u16,
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum InvalidAddress {
    #[error("{0:?} is not the address of a package index; write one like \"https://host/simple\"")]
    Index(String),
    #[error(
        "{0:?} is not a host; write one like \"files.example.org\" or \"files.example.org:8443\""
    )]
    Host(String),
}

impl PackageIndex {
    pub fn parse(text: &str) -> Result<PackageIndex, InvalidAddress> {
        let invalid = || InvalidAddress::Index(redact_password(text));
        let url = Url::parse(text.trim()).map_err(|_| invalid())?;
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none();
        if is_plain { Ok(PackageIndex(url)) } else { Err(invalid()) }
    }

    /// Returns the URL including a password: for the installer only.
    pub(super) fn for_installer(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn has_password(&self) -> bool {
        !self.0.username().is_empty() || self.0.password().is_some()
    }

    pub(super) fn is_plain_http(&self) -> bool {
        self.0.scheme() == "http"
    }

    pub(super) fn host(&self) -> IndexHost {
        let name = self.0.host_str().unwrap_or_default().to_ascii_lowercase();
        IndexHost { name, port: self.0.port_or_known_default().unwrap_or(443) }
    }
}

/// Omits the password.
impl fmt::Display for PackageIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.clone();
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        f.write_str(shown.as_str())
    }
}

impl fmt::Debug for PackageIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({self})")
    }
}

impl IndexHost {
    /// Parses `name` or `name:port`; the default port is that of https.
    pub fn parse(text: &str) -> Result<IndexHost, InvalidAddress> {
        IndexHost::parse_canonical(text, 443)
            .ok_or_else(|| InvalidAddress::Host(text.chars().take(80).collect()))
    }

    /// Parses a host.
    ///
    /// THREAT[PKG-2]: accepts one canonical spelling only. Any other spelling is not a host, and so
    /// never an allowed one.
    pub(super) fn parse_canonical(text: &str, default_port: u16) -> Option<IndexHost> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, _)) if name.starts_with('[') && !name.ends_with(']') => (text, None),
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        };
        let port = match port {
            Some(digits) => {
                let is_number = (1..=5).contains(&digits.len())
                    && digits.bytes().all(|b| b.is_ascii_digit())
                    && !digits.starts_with('0');
                is_number.then(|| digits.parse().ok())??
            }
            None => default_port,
        };
        let name = name.to_ascii_lowercase();
        let is_v6 = name
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        let is_name = name.len() <= 253 && name.split('.').all(is_label);
        (is_v6 || is_name).then_some(IndexHost { name, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the name for resolving, without the brackets of an IPv6 address.
    pub(super) fn to_resolve(&self) -> &str {
        self.name.trim_matches(['[', ']'])
    }

    /// True if a list in the format of `NO_PROXY` contains the host.
    pub(super) fn is_listed_in(&self, list: &str) -> bool {
        list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
            let entry = entry.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
            let (entry, port) = match entry.rsplit_once(':') {
                Some((name, port)) if port.parse::<u16>().is_ok() && !name.contains(':') => {
                    (name.to_owned(), port.parse::<u16>().ok())
                }
                _ => (entry, None),
            };
            let is_below =
                self.name.strip_suffix(&entry).is_some_and(|before| before.ends_with('.'));
            port.is_none_or(|port| port == self.port)
                && (entry == "*" || entry == self.to_resolve() || is_below)
        })
    }
}

impl fmt::Display for IndexHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

fn redact_password(text: &str) -> String {
    let shown = match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => text.to_owned(),
    };
    shown.chars().take(200).collect()
}

#[cfg(test)]
mod tests;
