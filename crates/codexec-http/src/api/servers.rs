//! The user's MCP servers: their state, and what the user can do about it.

use codexec_gateway::{ServerHealth, ServerState};
use codexec_mcp_config::{DiscoveredServer, RemoteKind, TransportConfig};
use codexec_types::ServerName;
use http::StatusCode;
use serde_json::{Value, json};

use super::execution_view::{milliseconds, without_nulls};
use super::{Answer, ApiError, ApiRequest, ok};
use crate::error::json_response;

pub(super) async fn list(request: ApiRequest<'_>) -> Answer {
    ok(&json!({"items": list_servers(&request).await}))
}

pub(super) async fn get(request: ApiRequest<'_>) -> Answer {
    let name = request.path(0);
    let servers = list_servers(&request).await;
    let found = servers.into_iter().find(|server| server.get("name") == Some(&json!(name)));
    ok(&found.ok_or_else(no_server)?)
}

/// THREAT[HTTP-3]: a token learns only of servers that it may use.
async fn list_servers(request: &ApiRequest<'_>) -> Vec<Value> {
    let (app, connection) = (request.app(), request.connection());
    let files = app.live_settings.files();
    let find = |name: &str| files.servers.iter().find(|found| found.config.name.as_str() == name);
    let costs = app.gateway.measure_known_costs(&connection.policy().tools).await;
    let characters = |name: &str| {
        let cost = costs.iter().find(|cost| cost.server == name);
        cost.map_or(0, |cost| cost.characters)
    };
    let mut servers: Vec<Value> = Vec::new();
    for health in app.server_health(connection) {
        let found = find(&health.name).filter(|_| connection.sees_settings());
        servers.push(describe(&health, found, characters(&health.name)));
    }
    let is_off = |found: &&DiscoveredServer| found.off.is_some();
    let unused = files.servers.iter().filter(is_off).chain(&files.waiting);
    for found in unused.filter(|found| connection.sees_server(found.config.name.as_str())) {
        let name = found.config.name.as_str();
        if servers.iter().any(|server| server.get("name") == Some(&json!(name))) {
            continue;
        }
        let (state, error) = match &found.off {
            Some(why) => ("disabled", Some(why.clone())),
            None => ("waiting for approval", None),
        };
        let shown = Some(found).filter(|_| connection.sees_settings());
        servers.push(without_nulls(json!({
            "name": name,
            "state": state,
            "error": error,
            "transport": shown.map(transport),
            "origin": shown.map(origin),
        })));
    }
    servers
}

fn describe(health: &ServerHealth, found: Option<&DiscoveredServer>, characters: usize) -> Value {
    let counts = &health.counts;
    without_nulls(json!({
        "name": health.name,
        "state": health.state_name(),
        "login": (health.state == ServerState::NeedsLogin).then_some("needed"),
        "error": health.error,
        "last_error": counts.last_error,
        "problems": health.problems,
        "tools": health.tools,
        "tools_held": health.held,
        "is_list_stale": health.stale,
        "tool_tokens": characters.div_ceil(super::CHARACTERS_PER_TOKEN),
        "breaker": health.breaker.name(),
        "retry_s": health.retry_s,
        "calls": counts.calls,
        "failures": counts.failures,
        "timeouts": counts.timeouts,
        "refused": counts.refused,
        "in_flight": counts.in_flight,
        "waiting": counts.waiting,
        "restarts": counts.restarts,
        "latency_p50_ms": counts.latency.percentile(50).map(milliseconds),
        "latency_p95_ms": counts.latency.percentile(95).map(milliseconds),
        "pid": health.pid.filter(|_| found.is_some()),
        "transport": found.map(transport),
        "origin": found.map(origin),
    }))
}

fn transport(found: &DiscoveredServer) -> &'static str {
    match &found.config.transport {
        TransportConfig::Stdio(_) => "stdio",
        TransportConfig::Remote(remote) => match remote.kind {
            RemoteKind::Http => "http",
            RemoteKind::Sse => "sse",
        },
    }
}

pub(super) fn origin(found: &DiscoveredServer) -> Value {
    let file = found.config.source.display().to_string();
    json!({"client": found.client.name(), "file": file, "line": found.line})
}

fn no_server() -> ApiError {
    ApiError::not_found("there is no such server")
}

/// Stops a server's process and starts it again.
pub(super) async fn restart(request: ApiRequest<'_>) -> Answer {
    let name = request.path(0);
    if !request.connection().sees_server(name) || !request.app().gateway.restart(name).await {
        return Err(no_server());
    }
    Ok(json_response(StatusCode::ACCEPTED, &json!({"name": name, "state": "starting"})))
}

/// Returns the name, if the client may know of this server.
pub(super) fn known_name(request: &ApiRequest<'_>, name: &str) -> Result<ServerName, ApiError> {
    let name =
        ServerName::new(name).ok().filter(|name| request.connection().sees_server(name.as_str()));
    let mut known = request.app().gateway.server_names().into_iter();
    let name = name.filter(|name| known.any(|other| other == *name));
    name.ok_or_else(no_server)
}
