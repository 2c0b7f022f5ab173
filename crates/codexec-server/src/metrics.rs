//! Numbers about the server, in the text format of Prometheus. Labels are words of closed sets and
//! names of servers.

mod executions;
mod text;

use codexec_exec::PoolLoad;
use codexec_gateway::{BreakerState, ServerMetrics};
use codexec_telemetry::HistogramCounts;

pub(crate) use self::executions::ExecutionCounts;
pub use self::text::{MetricKind, MetricsText};
use crate::App;

/// Writes the numbers of the app, and of the servers that `sees` includes.
pub fn write_metrics(app: &App, sees: impl Fn(&str) -> bool) -> String {
    let mut text = MetricsText::default();
    let (running, waiting) = app.workers.load();
    text.gauge("codexec_executions_running", "Executions that run now", running);
    text.gauge("codexec_executions_waiting", "Executions that wait for a worker", waiting);
    app.execution_counts.write(&mut text);
    write_workers(app, &mut text);
    if let Some(bytes) = resident_memory() {
        text.gauge("process_resident_memory_bytes", "Memory of the server itself", bytes);
    }
    let mut servers = app.gateway.metrics();
    servers.retain(|server| sees(&server.health.name));
    write_servers(&servers, &mut text);
    write_caches(&servers, &mut text);
    text.into_text()
}

fn write_workers(app: &App, text: &mut MetricsText) {
    let (max, pools) = app.workers.pools();
    text.gauge("codexec_workers_max", "Executions outside sessions that may run at once", max);
    let mut family = |name: &str, help: &str, number: fn(&PoolLoad) -> usize| {
        text.family(name, MetricKind::Gauge, help);
        for pool in &pools {
            text.number(name, &[("pool", pool.name)], number(pool));
        }
    };
    family("codexec_workers_waiting", "Workers that wait for code", |pool| pool.waiting);
    family("codexec_workers_busy", "Workers that run code or belong to a session", |pool| {
        pool.busy
    });
}

fn write_servers(servers: &[ServerMetrics], text: &mut MetricsText) {
    use MetricKind::{Counter, Gauge, Histogram};
    let mut family = |name: &str, kind, help: &str, number: fn(&ServerMetrics) -> String| {
        text.family(name, kind, help);
        for server in servers {
            text.number(name, &[("server", &server.health.name)], number(server));
        }
    };
    family("circuit_breaker_state", Gauge, "0 closed, 1 open, 0.5 half open", |server| {
        let state = match server.health.breaker {
            BreakerState::Closed => "0",
            BreakerState::Open => "1",
            BreakerState::Probing => "0.5",
        };
        state.to_owned()
    });
    family("circuit_breaker_failures_total", Counter, "Failed tool calls", |server| {
        server.health.counts.failures.to_string()
    });
    family("pool_active_connections", Gauge, "Tool calls that run now", |server| {
        server.health.counts.in_flight.to_string()
    });
    family("pool_queue_depth", Gauge, "Tool calls that wait for their turn", |server| {
        server.health.counts.waiting.to_string()
    });
    family("codexec_tool_calls_total", Counter, "Tool calls", |server| {
        server.health.counts.calls.to_string()
    });
    let mut histogram = |name: &str, help: &str, counts: fn(&ServerMetrics) -> HistogramCounts| {
        text.family(name, Histogram, help);
        for server in servers {
            text.histogram(name, &[("server", &server.health.name)], &counts(server));
        }
    };
    let help = "Time that tool calls waited for their turn";
    histogram("pool_queue_wait_seconds", help, |server| server.queue_wait.clone());
    let help = "Time until servers answered tool calls";
    histogram("codexec_tool_call_duration_seconds", help, latency);
}

fn latency(server: &ServerMetrics) -> HistogramCounts {
    let latency = &server.health.counts.latency;
    let mut count = 0;
    let within = latency.buckets.iter().filter_map(|(bound, in_bucket)| {
        count += in_bucket;
        bound.map(|bound| (bound, count))
    });
    HistogramCounts { within: within.collect(), count: latency.count, sum: latency.total }
}

/// The only cache that is worth a number is that of tool lists; it saves starting a server.
fn write_caches(servers: &[ServerMetrics], text: &mut MetricsText) {
    let mut family = |name: &str, help: &str, number: u64| {
        text.family(name, MetricKind::Counter, help);
        text.number(name, &[("cache_type", "tools")], number);
    };
    let hits = servers.iter().map(|server| server.list_hits).sum();
    family("cache_hits_total", "Called tools that a known tool list had", hits);
    let misses = servers.iter().map(|server| server.list_misses).sum();
    family("cache_misses_total", "Called tools for which a server was asked", misses);
}

/// Returns the memory of this process that is in RAM.
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}
