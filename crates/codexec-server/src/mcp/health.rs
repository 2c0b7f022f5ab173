use std::time::Instant;

use codexec_gateway::ServerHealth;
use serde_json::{Map, Value, json};

use super::fields::Fields;
use crate::{App, Budget, Reply};

pub(super) async fn call(app: &App, arguments: Map<String, Value>, started: Instant) -> Reply {
    if let Err(error) = Fields::new(arguments).finish() {
        return Reply::error(format!("INVALID_ARGS: {error}"));
    }
    let (sandbox, is_sandboxed) = match app.workers.posture().await {
        Ok(posture) => {
            let layers = posture.names();
            let missing: Map<String, Value> = posture
                .missing
                .into_iter()
                .map(|missing| (missing.layer.name().to_owned(), missing.reason.into()))
                .collect();
            (json!({"layers": layers, "missing": missing}), true)
        }
        Err(error) => (json!({"error": error.to_string()}), false),
    };
    let counts = match app.records.store().await {
        Ok(store) => store.counts().await,
        Err(error) => Err(error),
    };
    let (store, is_stored) = match counts {
        Ok(counts) => (json!({"executions": counts.total}), true),
        Err(error) => (json!({"error": error.to_string()}), false),
    };
    let (running, waiting) = app.workers.load();
    let servers: Vec<Value> = app.gateway.health().iter().map(server).collect();
    let mut health = json!({
        "healthy": is_sandboxed && is_stored,
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": started.elapsed().as_secs(),
        "running": running,
        "waiting": waiting,
        "sandbox": sandbox,
        "store": store,
        "servers": servers,
    });
    let problems = app.in_force.problems();
    if !problems.is_empty()
        && let Some(health) = health.as_object_mut()
    {
        health.insert("problems".to_owned(), json!(problems));
    }
    let text = Budget::DEFAULT.cut(&health.to_string(), "`codexec doctor` shows all");
    Reply::fine(text)
}

fn server(health: &ServerHealth) -> Value {
    json!({
        "name": health.name,
        "state": health.state.name(),
        "tools": health.tools,
        "calls": health.calls,
        "error": health.error,
    })
}
