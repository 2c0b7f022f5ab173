//! Numbers about the server, in the text format of Prometheus.

use std::fmt::Write as _;

use codexec_gateway::BreakerState;

use crate::App;

/// Writes the numbers of the app, and of the servers that `sees` includes.
pub fn write_metrics(app: &App, sees: impl Fn(&str) -> bool) -> String {
    let (running, waiting) = app.workers.load();
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: usize| {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
    };
    gauge("codexec_executions_running", "Executions that run now", running);
    gauge("codexec_executions_waiting", "Executions that wait for a worker", waiting);
    let servers: Vec<_> = app.gateway.health();
    let servers: Vec<_> = servers.iter().filter(|server| sees(server.name.as_str())).collect();
    let mut family = |name: &str, kind: &str, help: &str, values: Vec<String>| {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (server, value) in servers.iter().zip(values) {
            // Names of servers have no characters that would need an escape.
            let _ = writeln!(text, "{name}{{server=\"{}\"}} {value}", server.name);
        }
    };
    let state = |state: BreakerState| match state {
        BreakerState::Closed => "0",
        BreakerState::Open => "1",
        BreakerState::Probing => "0.5",
    };
    let states = servers.iter().map(|server| state(server.breaker).to_owned()).collect();
    family("circuit_breaker_state", "gauge", "0 closed, 1 open, 0.5 half open", states);
    let failures = servers.iter().map(|server| server.counts.failures.to_string()).collect();
    family("circuit_breaker_failures_total", "counter", "Failed tool calls", failures);
    let active = servers.iter().map(|server| server.counts.in_flight.to_string()).collect();
    family("pool_active_connections", "gauge", "Tool calls that run now", active);
    let queued = servers.iter().map(|server| server.counts.waiting.to_string()).collect();
    family("pool_queue_depth", "gauge", "Tool calls that wait for their turn", queued);
    let calls = servers.iter().map(|server| server.counts.calls.to_string()).collect();
    family("codexec_tool_calls_total", "counter", "Tool calls", calls);
    text
}
