//! The server itself: health, numbers, settings.

use codexec_server::mcp;
use codexec_types::Language;
use serde_json::{Value, json};

use super::execution_view::milliseconds;
use super::{Answer, ApiRequest, CHARACTERS_PER_TOKEN, ok};

pub(super) async fn health(request: ApiRequest<'_>) -> Answer {
    let (app, started) = (request.app(), request.edge.started);
    ok(&mcp::health_report(app, request.connection(), started).await)
}

/// Returns what has run, and how many tokens that saved.
pub(super) async fn stats(request: ApiRequest<'_>) -> Answer {
    let (app, connection) = (request.app(), request.connection());
    let scope = connection.read_scope();
    let store = app.records.store().await?;
    let totals = store.count_totals(&scope).await?;
    let counts = store.count_executions(&scope).await?;
    let costs = app.gateway.measure_known_costs(&connection.policy().tools).await;
    let characters: usize = costs.iter().map(|cost| cost.characters).sum();
    let (_, own_characters) = mcp::measure_tool_list();
    let per_token = CHARACTERS_PER_TOKEN as u64;
    // Whatever a tool returned stayed in the sandbox, except what the code printed or returned.
    let saved = totals.saved_bytes / per_token;
    let (running, waiting) = app.workers.load();
    let load = connection.sees_settings().then(|| json!({"running": running, "waiting": waiting}));
    ok(&super::execution_view::without_nulls(json!({
        "executions": {"total": counts.total, "running": counts.running},
        "tool_calls": totals.calls,
        "tool_result_bytes": totals.result_bytes,
        "shown_bytes": totals.shown_bytes,
        "tokens": {
            "saved_by_results": saved,
            "all_tools": characters.div_ceil(CHARACTERS_PER_TOKEN),
            "listed_tools": own_characters.div_ceil(CHARACTERS_PER_TOKEN),
        },
        "sessions": app.sessions.list_in(&scope).len(),
        "workers": load,
    })))
}

/// Returns the settings in force. None of them is a secret.
pub(super) async fn settings(request: ApiRequest<'_>) -> Answer {
    let (app, policy) = (request.app(), request.edge.parts.policy.get());
    let languages: Vec<&str> = policy.languages.iter().copied().map(Language::name).collect();
    let allowed: Vec<String> =
        policy.files.allowed.iter().map(|path| path.display().to_string()).collect();
    let (limits, http) = (&policy.limits, &request.edge.settings);
    let patterns: Vec<Vec<String>> = policy
        .tools
        .lists()
        .iter()
        .map(|list| list.iter().map(ToString::to_string).collect())
        .collect();
    let problems: Vec<Value> = app.live_settings.problems().into_iter().map(Value::from).collect();
    ok(&json!({
        "languages": languages,
        "limits": {
            "wall_ms": milliseconds(limits.wall),
            "max_wall_ms": milliseconds(policy.max_wall),
            "cpu_ms": milliseconds(limits.cpu),
            "memory_bytes": limits.memory_bytes,
            "processes": limits.processes,
            "open_files": limits.open_files,
            "disk_bytes": limits.disk_bytes,
            "disk_files": limits.disk_files,
            "output_bytes": limits.output_bytes,
            "tool_calls": limits.tool_calls,
            "code_bytes": policy.code_bytes,
            "input_bytes": policy.input_bytes,
        },
        "working_dirs": {"allowed": allowed, "is_writable": policy.files.is_writable},
        "allowed_tools": patterns,
        "http": {
            "connections_per_peer": http.connections_per_peer,
            "requests_per_minute": http.requests_per_minute,
            "max_body_bytes": http.max_body_bytes,
            "hosts": http.hosts,
            "has_tls": http.tls.is_some(),
            "has_public_metrics": http.public_metrics,
            "header_timeout_ms": milliseconds(http.header_timeout),
            "body_timeout_ms": milliseconds(http.body_timeout),
            "write_timeout_ms": milliseconds(http.write_timeout),
            "grace_ms": milliseconds(http.grace),
        },
        "problems": problems,
    }))
}
