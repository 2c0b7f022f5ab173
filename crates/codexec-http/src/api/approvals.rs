//! Server entries and tool definitions that wait for the user's approval.

use codexec_gateway::PendingApproval;
use codexec_mcp_config::{DiffLine, DiffSign, DiscoveredServer, PendingEntry};
use codexec_server::Fields;
use codexec_types::ServerName;
use http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::execution_view::without_nulls;
use super::{Answer, ApiError, ApiRequest, ok};
use crate::error::json_response;

/// A server entry or a tool definition that waits for approval.
enum Waiting {
    /// An entry of a file that came with a project.
    Entry(Box<DiscoveredServer>, Box<PendingEntry>),
    Tool(ServerName, Box<PendingApproval>),
}

pub(super) async fn list(request: ApiRequest<'_>) -> Answer {
    let items: Vec<Value> = list_waiting(&request).iter().map(view).collect();
    ok(&json!({"items": items}))
}

/// Approves what was shown, exactly, or refuses it.
///
/// THREAT[HTTP-15]: the id is a hash of the entry or definition that was shown, so that a change in
/// between is not approved.
pub(super) async fn decide(mut request: ApiRequest<'_>) -> Answer {
    let mut fields = Fields::new(std::mem::take(&mut request.body));
    let decision = fields.choice("decision", &[("approve", true), ("deny", false)])?;
    fields.finish()?;
    let Some(is_approved) = decision else {
        return Err(ApiError::invalid("decision: it is missing; it must be approve or deny"));
    };
    let mut waiting = list_waiting(&request).into_iter();
    let found = waiting.find(|one| id(one) == request.path(0));
    let found = found.ok_or_else(|| ApiError::not_found("nothing with this id waits"))?;
    if is_approved {
        approve(&request, &found).await?;
    }
    // Whatever is not approved stays held.
    let word = if is_approved { "approved" } else { "denied" };
    ok(&json!({"id": request.path(0), "decision": word}))
}

/// Approves the entry of a server that waits.
pub(super) async fn approve_server(request: ApiRequest<'_>) -> Answer {
    let name = request.path(0);
    let waiting = list_waiting(&request);
    let mut entries = waiting.iter().filter(|one| match one {
        Waiting::Entry(server, _) => server.config.name.as_str() == name,
        Waiting::Tool(..) => false,
    });
    let found = entries.next().ok_or_else(|| ApiError::not_found("no such server waits"))?;
    approve(&request, found).await?;
    Ok(json_response(StatusCode::ACCEPTED, &json!({"name": name, "state": "approved"})))
}

async fn approve(request: &ApiRequest<'_>, waiting: &Waiting) -> Result<(), ApiError> {
    let failed = |error: &dyn std::fmt::Display| {
        ApiError::from_code("STORE_UNAVAILABLE", &error.to_string())
    };
    match waiting {
        Waiting::Entry(_, entry) => {
            let approvals = request.app().live_settings.approvals().cloned();
            let approvals = approvals.ok_or_else(|| failed(&"approvals cannot be kept"))?;
            let entry = entry.clone();
            // The running server notices the file.
            let done = tokio::task::spawn_blocking(move || approvals.approve(&entry)).await;
            done.map_err(|_| ApiError::internal())?.map_err(|error| failed(&error))
        }
        Waiting::Tool(server, tool) => {
            let done = request.app().gateway.approve(server, std::slice::from_ref(&**tool)).await;
            done.map_err(|error| failed(&error))
        }
    }
}

fn list_waiting(request: &ApiRequest<'_>) -> Vec<Waiting> {
    let app = request.app();
    let files = app.live_settings.files();
    let entries = files.waiting.iter().filter(|found| found.off.is_none()).filter_map(|found| {
        let pending = found.pending.clone()?;
        Some(Waiting::Entry(Box::new(found.clone()), Box::new(pending)))
    });
    let mut all: Vec<Waiting> = entries.collect();
    for server in app.gateway.server_names() {
        let tools = app.gateway.pending_approvals(&server);
        all.extend(tools.into_iter().map(|tool| Waiting::Tool(server.clone(), Box::new(tool))));
    }
    all
}

/// Returns a hash of everything that the user sees.
fn id(waiting: &Waiting) -> String {
    let text = match waiting {
        Waiting::Entry(server, entry) => {
            format!("entry\0{}\0{}", server.config.name, entry.fingerprint())
        }
        Waiting::Tool(server, tool) => {
            format!("tool\0{server}\0{}\0{}", tool.tool, tool.sha256())
        }
    };
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn view(waiting: &Waiting) -> Value {
    let (kind, server, tool, is_change, lines) = match waiting {
        Waiting::Entry(server, entry) => {
            ("server", server.config.name.to_string(), None, entry.is_change(), entry.diff_lines())
        }
        Waiting::Tool(server, tool) => {
            let name = Some(tool.escaped_name());
            ("tool", server.to_string(), name, tool.before.is_some(), tool.diff_lines())
        }
    };
    let origin = match waiting {
        Waiting::Entry(server, _) => Some(super::servers::origin(server)),
        Waiting::Tool(..) => None,
    };
    let difference: Vec<Value> = lines.iter().map(line).collect();
    without_nulls(json!({
        "id": id(waiting),
        "kind": kind,
        "server": server,
        "tool": tool,
        "is_change": is_change,
        "origin": origin,
        "difference": difference,
    }))
}

fn line(line: &DiffLine) -> Value {
    let sign = match line.sign {
        DiffSign::Added => "+",
        DiffSign::Removed => "-",
    };
    json!({"sign": sign, "text": line.text, "has_hidden": line.has_hidden})
}
