use std::time::Instant;

use codexec_gateway::{BreakerState, ServerHealth};
use serde_json::{Map, Value, json};

use crate::fields::Fields;
use crate::{App, Connection, TextBudget, ToolReply};

pub(super) async fn call(
    app: &App,
    connection: &Connection,
    arguments: Map<String, Value>,
    started: Instant,
) -> ToolReply {
    if let Err(error) = Fields::new(arguments).finish() {
        return ToolReply::error(format!("INVALID_ARGS: {error}"));
    }
    let health = report(app, connection, started).await;
    let text = TextBudget::DEFAULT.cut(&health.to_string(), "`codexec doctor` shows all");
    ToolReply::success(text)
}

/// Returns the health of the server, as far as the client may see it.
pub async fn report(app: &App, connection: &Connection, started: Instant) -> Value {
    let sandbox = match app.workers.posture().await {
        Ok(posture) => {
            let layers = posture.names();
            let missing: Map<String, Value> = posture
                .missing
                .into_iter()
                .map(|missing| (missing.layer.name().to_owned(), missing.reason.into()))
                .collect();
            json!({"layers": layers, "missing": missing})
        }
        Err(error) => json!({"error": error.to_string()}),
    };
    let counts = match app.records.store().await {
        Ok(store) => store.count_executions(&connection.read_scope()).await,
        Err(error) => Err(error),
    };
    let store = match counts {
        Ok(counts) => json!({"executions": counts.total}),
        Err(error) => json!({"error": error.to_string()}),
    };
    let (running, waiting) = app.workers.load();
    let servers = app.server_health(connection);
    let unhealthy: Vec<String> = [("sandbox", &sandbox), ("store", &store)]
        .into_iter()
        .filter_map(|(what, state)| Some(format!("{what}: {}", state.get("error")?.as_str()?)))
        .chain(servers.iter().filter_map(ServerHealth::describe_problem))
        .collect();
    let disabled = app.gateway.disabled_servers();
    let disabled = disabled
        .iter()
        .filter(|(name, _)| connection.sees_server(name.as_str()))
        .map(|(name, why)| json!({"name": name.as_str(), "state": "disabled", "reason": why}));
    let servers: Vec<Value> = servers.iter().map(server_health).chain(disabled).collect();
    let mut health = json!({
        "healthy": unhealthy.is_empty(),
        "unhealthy": unhealthy,
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": started.elapsed().as_secs(),
        "running": running,
        "waiting": waiting,
        "sandbox": sandbox,
        "store": store,
        "servers": servers,
    });
    if let Some(health) = health.as_object_mut()
        && health.get("healthy") == Some(&Value::Bool(true))
    {
        health.shift_remove("unhealthy");
    }
    if !connection.sees_settings() {
        return health;
    }
    let problems = app.live_settings.problems();
    if !problems.is_empty()
        && let Some(health) = health.as_object_mut()
    {
        health.insert("problems".to_owned(), json!(problems));
    }
    let waiting = app.live_settings.pending_servers();
    if !waiting.is_empty()
        && let Some(health) = health.as_object_mut()
    {
        let what = json!({"servers": waiting, "approve_with": "codexec servers approve"});
        health.insert("waiting_for_approval".to_owned(), what);
    }
    health
}

/// Returns true if code can run and be recorded, and no server has a problem.
pub async fn is_healthy(app: &App) -> bool {
    app.workers.posture().await.is_ok()
        && app.records.store().await.is_ok()
        && app.gateway.health().iter().all(|server| server.describe_problem().is_none())
}

/// Formats a server's health. Only values that differ from the normal state are included.
fn server_health(health: &ServerHealth) -> Value {
    let counts = &health.counts;
    let mut shown = json!({
        "name": health.name,
        "state": health.state_name(),
        "tools": health.tools,
        "calls": counts.calls,
        "error": health.error,
    });
    let Some(fields) = shown.as_object_mut() else { return shown };
    for (name, count) in [
        ("failures", counts.failures),
        ("timeouts", counts.timeouts),
        ("refused", counts.refused),
        ("in_flight", counts.in_flight as u64),
        ("waiting", counts.waiting as u64),
        ("restarts", counts.restarts),
    ] {
        if count > 0 {
            fields.insert(name.to_owned(), count.into());
        }
    }
    if health.held > 0 {
        fields.insert("held".to_owned(), health.held.into());
    }
    if health.stale {
        fields.insert("stale".to_owned(), true.into());
    }
    if health.breaker != BreakerState::Closed {
        fields.insert("breaker".to_owned(), health.breaker.name().into());
    }
    if let Some(retry_s) = health.retry_s {
        fields.insert("retry_in_s".to_owned(), retry_s.into());
    }
    if let Some(error) = &counts.last_error {
        fields.insert("last_error".to_owned(), error.as_str().into());
    }
    for (name, percent) in [("p50_ms", 50), ("p95_ms", 95)] {
        if let Some(took) = counts.latency.percentile(percent) {
            let ms = (took.as_secs_f64() * 1e5).round() / 100.0;
            fields.insert(name.to_owned(), ms.into());
        }
    }
    shown
}
