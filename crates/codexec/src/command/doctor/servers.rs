//! Starts each server, and says once how that went.

use std::io::Write as _;
use std::time::Duration;

use codexec_mcp_config::ProblemEffect;
use serde::Serialize;

use super::super::server_progress::{FailureReport, run_with_server_progress};
use super::super::servers::{ServerRow, list_rows};
use super::super::terminal::{Paint, paint_stdout};
use super::print_line;
use crate::parts::Parts;

/// How long servers may take to start.
const PATIENCE: Duration = Duration::from_secs(15);

/// A server, and whether it works.
#[derive(Serialize)]
pub(super) struct CheckedServer {
    name: String,
    state: &'static str,
    about: String,
    #[serde(skip)]
    paint: Paint,
}

/// Starts the servers, unless `no_check`, and stops them again.
pub(super) async fn check_servers(parts: &Parts, no_check: bool) -> Vec<CheckedServer> {
    let refused: Vec<String> =
        parts.gateway.list_start_refusals().into_iter().map(|(name, _)| name.to_string()).collect();
    let health = if no_check {
        None
    } else {
        let starting = parts.gateway.start_all(PATIENCE);
        run_with_server_progress(&parts.gateway, FailureReport::InList, starting).await;
        let health = parts.gateway.health();
        parts.gateway.shutdown().await;
        Some(health)
    };
    let rows = list_rows(parts, health.as_deref());
    // The problem itself says which server is left out.
    let rows = rows.into_iter().filter(|row| row.state != "left out");
    rows.map(|row| checked(row, &refused)).collect()
}

fn checked(row: ServerRow, refused: &[String]) -> CheckedServer {
    let place = format!("{}:{}", row.file.display(), row.line);
    let is_refused = refused.contains(&row.name);
    let why = row.about.unwrap_or_default();
    let (state, paint, about) = match row.state {
        _ if is_refused => {
            let why = why.strip_prefix("it did not start: ").unwrap_or(&why);
            ("REFUSED", Paint::Bad, why.to_owned())
        }
        "ready" => {
            let tools = row.tools.unwrap_or(0);
            let more = if why.is_empty() { why } else { format!("; {why}") };
            ("ok", Paint::Good, format!("{tools} tools; {place}{more}"))
        }
        "disabled" => ("off", Paint::Faint, format!("{place}: {why}")),
        "waiting" => ("WAITING", Paint::Warning, format!("{place}: {why}")),
        "held" => ("HELD", Paint::Warning, format!("{place}: {why}")),
        "starting" => {
            let patience = PATIENCE.as_secs();
            let logs = format!("see `codexec servers logs {}`", row.name);
            ("SLOW", Paint::Warning, format!("{place}: no answer within {patience} s; {logs}"))
        }
        "not checked" => ("named", Paint::Faint, place),
        _ => ("FAILED", Paint::Bad, format!("{place}: {why}")),
    };
    CheckedServer { name: row.name, state, about, paint }
}

pub(super) fn print_servers(parts: &Parts, servers: &[CheckedServer]) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "\nServers")?;
    for CheckedServer { name, state, about, paint } in servers {
        print_line(&mut out, (state, *paint), name, about)?;
    }
    for problem in &parts.named_servers.problems {
        let (effect, paint) = match problem.effect {
            ProblemEffect::LeftOut => ("LEFT OUT", Paint::Bad),
            ProblemEffect::Kept => ("WARNING ", Paint::Warning),
        };
        writeln!(out, "  {} {problem}", paint_stdout(paint, effect))?;
    }
    if servers.is_empty() {
        writeln!(out, "  none; add one with `codexec servers add` or --mcp-config FILE")?;
    }
    Ok(())
}
