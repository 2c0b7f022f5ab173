//! Defaults for all MCP servers, and the clients whose files name servers.

use std::time::Duration;

use codexec_gateway::GatewaySettings;
use codexec_mcp_config::{ConfigOwner, DiscoverySettings, ProjectServers, TrustMode};

use super::{ConfigError, file, limits::within};

/// Defaults for all MCP servers.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamDefaults {
    startup_timeout: Duration,
    call_timeout: Duration,
    call_total_timeout: Duration,
    calls_at_once: usize,
    calls_in_all: usize,
    queue: usize,
    queue_wait: Duration,
    trust: TrustMode,
}

const HOUR_MS: u64 = 3_600_000;

pub(super) fn upstreams(file: &file::GatewaySection) -> Result<UpstreamDefaults, ConfigError> {
    let total = file.max_total_timeout_ms;
    let total = within("gateway.max-total-timeout-ms", total, 600_000, 1..=24 * HOUR_MS)?;
    let call =
        within("gateway.timeout-ms", file.timeout_ms, 60_000.min(total), 1..=total.min(HOUR_MS))?;
    let startup = file.startup_timeout_ms;
    let startup = within("gateway.startup-timeout-ms", startup, 60_000, 1..=HOUR_MS)?;
    let in_all = file.max_total_concurrency;
    let in_all = within("gateway.max-total-concurrency", in_all, 400, 1..=10_000)?;
    let at_once = file.max_concurrency;
    let at_once = within("gateway.max-concurrency", at_once, 100.min(in_all), 1..=1_000)?;
    let queue = within("gateway.queue", file.queue, 200, 0..=10_000)?;
    let wait = within("gateway.queue-wait-ms", file.queue_wait_ms, 30_000, 0..=HOUR_MS)?;
    let trust = match &file.trust {
        None => TrustMode::default(),
        Some(word) => TrustMode::parse(word).ok_or_else(|| ConfigError::Trust(word.clone()))?,
    };
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(UpstreamDefaults {
        startup_timeout: Duration::from_millis(startup),
        call_timeout: Duration::from_millis(call),
        call_total_timeout: Duration::from_millis(total),
        calls_at_once: count(at_once),
        calls_in_all: count(in_all),
        queue: count(queue),
        queue_wait: Duration::from_millis(wait),
        trust,
    })
}

pub(super) fn discovery(file: &file::DiscoverySection) -> Result<DiscoverySettings, ConfigError> {
    let clients: Result<Vec<ConfigOwner>, ConfigError> = match &file.clients {
        None => Ok(ConfigOwner::ALL.to_vec()),
        Some(names) => names
            .iter()
            .map(|name| ConfigOwner::parse(name).ok_or_else(|| ConfigError::Client(name.clone())))
            .collect(),
    };
    let project_servers = match &file.project_servers {
        None => ProjectServers::default(),
        Some(word) => {
            ProjectServers::parse(word).ok_or_else(|| ConfigError::ProjectServers(word.clone()))?
        }
    };
    let is_on = file.enabled.unwrap_or(true);
    let clients = clients?;
    Ok(DiscoverySettings {
        clients: if is_on { clients } else { Vec::new() },
        has_project_files: file.project_files.unwrap_or(true),
        project_servers,
    })
}

impl UpstreamDefaults {
    pub(crate) fn apply_to(&self, settings: GatewaySettings) -> GatewaySettings {
        GatewaySettings {
            startup_timeout: self.startup_timeout,
            call_timeout: self.call_timeout,
            call_total_timeout: self.call_total_timeout,
            calls_at_once: self.calls_at_once,
            calls_in_all: self.calls_in_all,
            queue: self.queue,
            queue_wait: self.queue_wait,
            trust: self.trust,
            ..settings
        }
    }
}
