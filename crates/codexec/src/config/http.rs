use std::time::Duration;

use codexec_http::{HttpSettings, Network, TlsFiles};

use super::{ConfigError, HostEnvironment, file, limits::within};

pub(super) fn http(
    file: &file::HttpSection,
    host: &HostEnvironment,
) -> Result<HttpSettings, ConfigError> {
    let default = HttpSettings::default();
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let seconds = |key, value, default: Duration| {
        Ok::<_, ConfigError>(Duration::from_secs(within(key, value, default.as_secs(), 1..=600)?))
    };
    let per_peer = within(
        "http.connections-per-peer",
        file.connections_per_peer,
        default.connections_per_peer as u64,
        1..=4_096,
    )?;
    let rate = within(
        "http.requests-per-minute",
        file.requests_per_minute,
        default.requests_per_minute.into(),
        1..=10_000_000,
    )?;
    let body_mib = within(
        "http.max-body-mib",
        file.max_body_mib,
        default.max_body_bytes as u64 >> 20,
        1..=64,
    )?;
    let proxy =
        |text: &String| Network::parse(text).ok_or_else(|| ConfigError::TrustedProxy(text.clone()));
    let tls = match (&file.tls_certificate, &file.tls_key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(TlsFiles {
            certificate: host.expand_home(certificate),
            key: host.expand_home(key),
        }),
        (Some(_), None) | (None, Some(_)) => return Err(ConfigError::HalfTls),
    };
    Ok(HttpSettings {
        connections_per_peer: count(per_peer),
        hosts: file.hosts.clone(),
        trusted_proxies: file.trusted_proxies.iter().map(proxy).collect::<Result<_, _>>()?,
        requests_per_minute: u32::try_from(rate).unwrap_or(u32::MAX),
        max_body_bytes: count(body_mib << 20),
        header_timeout: seconds(
            "http.header-timeout-s",
            file.header_timeout_s,
            default.header_timeout,
        )?,
        body_timeout: seconds("http.body-timeout-s", file.body_timeout_s, default.body_timeout)?,
        write_timeout: seconds(
            "http.write-timeout-s",
            file.write_timeout_s,
            default.write_timeout,
        )?,
        grace: seconds("http.grace-s", file.grace_s, default.grace)?,
        tls,
        public_metrics: file.public_metrics,
        allow_plain: false,
    })
}
