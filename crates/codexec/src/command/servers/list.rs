use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use codexec_gateway::ServerHealth;
use codexec_mcp_config::{
    DiscoveredServer, PendingEntry, ProblemEffect, RemoteKind, TransportConfig,
};
use serde::Serialize;
use serde_json::json;

use super::super::server_progress::{FailureReport, run_with_server_progress};
use super::super::terminal_text::table;
use crate::cli::servers::ListArgs;
use crate::parts::Parts;

/// How long the list waits for servers that do not answer.
const PATIENCE: Duration = Duration::from_secs(30);

const UNCHECKED: &str = "not checked";

/// One row of the list.
#[derive(Serialize)]
pub(crate) struct ServerRow {
    pub(crate) name: String,
    transport: &'static str,
    pub(crate) state: &'static str,
    pub(crate) tools: Option<usize>,
    client: &'static str,
    pub(crate) file: PathBuf,
    pub(crate) line: u32,
    /// Why the server is not ready, and what to do.
    pub(crate) about: Option<String>,
}

pub(super) async fn run(parts: &Parts, args: &ListArgs) -> anyhow::Result<ExitCode> {
    let health = if args.no_check {
        None
    } else {
        let starting = parts.gateway.start_all(PATIENCE);
        run_with_server_progress(&parts.gateway, FailureReport::InList, starting).await;
        Some(parts.gateway.health())
    };
    let rows = list_rows(parts, health.as_deref());
    let printed = if args.json { print_json(parts, &rows) } else { print_text(parts, &rows) };
    parts.gateway.shutdown().await;
    printed?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a row for every server that a file names, enabled or not. `health` is the result of
/// starting them.
pub(crate) fn list_rows(parts: &Parts, health: Option<&[ServerHealth]>) -> Vec<ServerRow> {
    let found = &parts.named_servers;
    let all = found.servers.iter().chain(&found.waiting);
    let mut rows: Vec<ServerRow> = all.map(|server| row(server, health)).collect();
    for (name, why) in parts.gateway.list_start_refusals() {
        let used = rows.iter_mut().find(|row| row.name == name.as_str() && row.state == UNCHECKED);
        if let Some(row) = used {
            (row.state, row.about) = ("refused", Some(why));
        }
    }
    for problem in &found.problems {
        let (ProblemEffect::LeftOut, Some(name)) = (problem.effect, &problem.server) else {
            continue;
        };
        if rows.iter().any(|row| row.name == *name) {
            continue;
        }
        rows.push(ServerRow {
            name: name.escape_debug().to_string(),
            transport: "-",
            state: "left out",
            tools: None,
            client: problem.client.name(),
            file: problem.file.clone(),
            line: problem.line,
            about: None,
        });
    }
    rows
}

fn row(found: &DiscoveredServer, health: Option<&[ServerHealth]>) -> ServerRow {
    let name = found.config.name.to_string();
    let health = health.filter(|_| found.pending.is_none());
    let health = health.and_then(|all| all.iter().find(|health| health.name == name));
    let (state, about) = match (&found.off, health) {
        (Some(why), _) => ("disabled", Some(why.clone())),
        (None, None) => match &found.pending {
            Some(pending) => ("waiting", Some(explain_waiting(pending, &name))),
            None => (UNCHECKED, None),
        },
        (None, Some(health)) => {
            let mut about: Vec<String> = health.error.iter().cloned().collect();
            about.extend(health.problems.iter().cloned());
            if health.held > 0 {
                about.push(format!(
                    "{} of its tools wait for approval; review them with `codexec servers \
                     approve {name}`",
                    health.held
                ));
            }
            let is_held = health.held > 0 && health.tools == Some(0);
            let state = if is_held { "held" } else { health.state.name() };
            (state, (!about.is_empty()).then(|| about.join("; ")))
        }
    };
    ServerRow {
        name,
        transport: match &found.config.transport {
            TransportConfig::Stdio(_) => "stdio",
            TransportConfig::Remote(remote) => match remote.kind {
                RemoteKind::Http => "http",
                RemoteKind::Sse => "sse",
            },
        },
        state,
        tools: health.and_then(|health| health.tools),
        client: found.client.name(),
        file: found.config.source.clone(),
        line: found.line,
        about,
    }
}

/// Explains why a server waits, and what to do.
fn explain_waiting(pending: &PendingEntry, name: &str) -> String {
    let why = match pending.is_change() {
        true => "its entry has changed since you approved it",
        false => "a project names it, and you have not approved it",
    };
    format!("{why}; review it with `codexec servers approve {name}`")
}

fn print_json(parts: &Parts, rows: &[ServerRow]) -> anyhow::Result<()> {
    let problem = |problem: &codexec_mcp_config::ConfigProblem| {
        json!({
            "file": problem.file,
            "line": problem.line,
            "client": problem.client.name(),
            "server": problem.server,
            "what": problem.what,
            "is_left_out": problem.effect == ProblemEffect::LeftOut,
        })
    };
    let problems: Vec<_> = parts.named_servers.problems.iter().map(problem).collect();
    let list = json!({"servers": rows, "problems": problems});
    writeln!(std::io::stdout(), "{list}")?;
    Ok(())
}

fn print_text(parts: &Parts, rows: &[ServerRow]) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    if rows.is_empty() {
        writeln!(out, "no file names a server; add one with `codexec servers add`")?;
    } else {
        let cells = |row: &ServerRow| {
            let tools = row.tools.map_or_else(|| "-".to_owned(), |tools| tools.to_string());
            let place = format!("{}:{} ({})", row.file.display(), row.line, row.client);
            vec![row.name.clone(), row.transport.to_owned(), row.state.to_owned(), tools, place]
        };
        let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
        write!(out, "{}", table(&["NAME", "TRANSPORT", "STATE", "TOOLS", "WHERE"], &cells))?;
    }
    let told: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{}: {}", row.name, row.about.as_ref()?)))
        .chain(parts.named_servers.problems.iter().map(ToString::to_string))
        .collect();
    if !told.is_empty() {
        writeln!(out)?;
    }
    for line in told {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
