use std::{path::PathBuf, time::Duration};

use codexec_mcp_config::TrustMode;
use codexec_telemetry::Tracer;
use codexec_types::GuestPaths;

use crate::{ToolCacheMode, Warden};

/// The servers that a search or discovery waits for. Servers without a list are started in
/// any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchWait {
    /// Every server, as long as `catalogue_wait`.
    #[default]
    AllServers,
    /// The same, except for servers that did not answer at an earlier start.
    ResponsiveServers,
    /// Nothing if a known tool matches, and otherwise this long for one that does.
    FirstMatch(Duration),
}

/// Limits and locations for all upstreams. Every wait and every buffer has a bound.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// From spawning the process to its first list of tools.
    pub startup_timeout: Duration,
    /// One tool call, from request to answer. A progress notification restarts it.
    pub call_timeout: Duration,
    /// One tool call in total, whatever progress arrives.
    pub call_total_timeout: Duration,
    /// Concurrent calls of one server.
    pub calls_at_once: usize,
    /// Concurrent calls of all servers together.
    pub calls_in_all: usize,
    /// The number of calls that may wait for one server, and for how long.
    pub queue: usize,
    pub queue_wait: Duration,
    /// How long the breaker stays open after five failures in a row.
    pub breaker_open: Duration,
    /// How long a request that needs a server's list waits, once, for a server that is still
    /// starting.
    pub catalogue_wait: Duration,
    pub search_wait: SearchWait,
    /// The longest line a server may send.
    pub line_bytes: usize,
    /// The longest unwrapped result a guest gets.
    pub result_bytes: usize,
    /// Base environment of every server process (PATH, HOME and the like), before the entry's own
    /// variables. This crate never reads the environment itself.
    pub env: Vec<(String, String)>,
    /// Working directory of servers that set no `cwd` and belong to no project.
    pub user_home: Option<PathBuf>,
    /// Directories that guests can write. No server is started from them.
    pub guest_paths: GuestPaths,
    /// Looks up an environment variable of this process, for secrets that name one.
    pub variable: fn(&str) -> Option<String>,
    /// Our own directory for lists, approvals, tokens and logs. `None` stores nothing.
    pub home: Option<PathBuf>,
    pub trust: TrustMode,
    pub cache: ToolCacheMode,
    pub warden: Warden,
    /// Records a span for each tool call.
    pub tracer: Tracer,
}

impl GatewaySettings {
    pub fn new(env: Vec<(String, String)>, warden: Warden) -> GatewaySettings {
        GatewaySettings {
            startup_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(60),
            call_total_timeout: Duration::from_secs(600),
            calls_at_once: 100,
            calls_in_all: 400,
            queue: 200,
            queue_wait: Duration::from_secs(30),
            breaker_open: Duration::from_secs(30),
            catalogue_wait: Duration::from_secs(5),
            search_wait: SearchWait::default(),
            line_bytes: 10 << 20,
            result_bytes: 8 << 20,
            env,
            user_home: None,
            guest_paths: GuestPaths::default(),
            variable: |_| None,
            home: None,
            trust: TrustMode::default(),
            cache: ToolCacheMode::default(),
            warden,
            tracer: Tracer::default(),
        }
    }
}
