use std::time::{Instant, SystemTime};

use codexec_gateway::{ServerHealth, ServerState};
use codexec_server::{App, Client, Fields};
use codexec_types::format_rfc3339;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use super::refusal::ExecutorRefusal;

pub(super) async fn report(
    app: &App,
    client: &Client,
    arguments: Map<String, Value>,
    (connected_at, has_audit_log): (Instant, bool),
) -> Result<CallToolResult, ExecutorRefusal> {
    Fields::new(arguments).finish()?;
    let sandbox = app.workers.posture().await.err().map(|error| format!("sandbox: {error}"));
    let store = app.records.store().await.err().map(|error| format!("store: {error}"));
    let servers = app.server_health(&client.connection);
    let problems = servers.iter().filter_map(ServerHealth::describe_problem);
    let unhealthy: Vec<String> = sandbox.into_iter().chain(store).chain(problems).collect();
    let connected = servers.iter().filter(|server| server.state == ServerState::Ready).count();
    let sum = |count: fn(&ServerHealth) -> usize| -> usize { servers.iter().map(count).sum() };
    let mut health = json!({
        "healthy": unhealthy.is_empty(),
        "auditLog": {"enabled": has_audit_log},
        "mcpClients": {"connected": connected},
        "connectionPool": {
            "active": sum(|server| server.counts.in_flight),
            "waiting": sum(|server| server.counts.waiting),
            "max": app.gateway.max_concurrent_calls(),
        },
        "uptime": (connected_at.elapsed().as_secs_f64() * 1e3).round() / 1e3,
        "timestamp": format_rfc3339(SystemTime::now()),
    });
    if let (Some(fields), false) = (health.as_object_mut(), unhealthy.is_empty()) {
        fields.insert("unhealthy".to_owned(), json!(unhealthy));
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(health.to_string())]);
    result.structured_content = Some(health);
    Ok(result)
}
