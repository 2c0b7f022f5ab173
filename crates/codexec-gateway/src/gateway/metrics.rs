//! The numbers of each server.

use codexec_telemetry::HistogramCounts;

use super::{Gateway, ServerHealth, health::server_health};

/// The numbers of one server, since this process began.
#[derive(Clone, Debug)]
pub struct ServerMetrics {
    pub health: ServerHealth,
    /// How long calls waited for their turn; calls that did not wait are not counted.
    pub queue_wait: HistogramCounts,
    /// Tools that were found in the known list.
    pub list_hits: u64,
    /// Tools for which the server had to be asked.
    pub list_misses: u64,
}

impl Gateway {
    pub fn metrics(&self) -> Vec<ServerMetrics> {
        let of_server = |upstream: &std::sync::Arc<super::Upstream>| {
            let (list_hits, list_misses) = upstream.lookups();
            let (health, queue_wait) = (server_health(upstream), upstream.waits());
            ServerMetrics { health, queue_wait, list_hits, list_misses }
        };
        self.fleet().upstreams.iter().map(of_server).collect()
    }
}
