//! `codexec servers approve`: shows the servers and tools that wait, and asks the user to approve
//! them. No other code approves anything.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codexec_gateway::PendingApproval;
use codexec_mcp_config::DiscoveredServer;
use codexec_mcp_config::{DiffLine, DiffSign};
use codexec_types::ServerName;

use crate::cli::servers::ApproveArgs;
use crate::parts::Parts;

pub(super) async fn run(parts: &Parts, args: &ApproveArgs) -> anyhow::Result<ExitCode> {
    let code = execute(parts, args).await;
    parts.gateway.shutdown().await;
    code
}

async fn execute(parts: &Parts, args: &ApproveArgs) -> anyhow::Result<ExitCode> {
    let Some(name) = &args.name else { return review_all(parts, args).await };
    let waiting: Vec<&DiscoveredServer> =
        waiting_servers(parts).filter(|found| found.config.name.as_str() == name).collect();
    if !waiting.is_empty() {
        if !args.tool.is_empty() {
            bail!("server {name} itself waits for approval; approve it first, without --tool");
        }
        return review_servers(parts, args, &waiting);
    }
    let names = parts.gateway.server_names();
    let Some(server) = names.iter().find(|known| known.as_str() == name) else {
        let all = names.iter().chain(waiting_servers(parts).map(|found| &found.config.name));
        let names: Vec<&str> = all.map(ServerName::as_str).collect();
        bail!("no server {name:?}; the servers are {}", names.join(", "));
    };
    let waiting = select_tools(parts.gateway.fetch_pending_approvals(server).await?, &args.tool)?;
    review_tools(parts, args, server, &waiting).await
}

/// Reviews everything that is known to wait, without starting a server.
async fn review_all(parts: &Parts, args: &ApproveArgs) -> anyhow::Result<ExitCode> {
    if !args.tool.is_empty() {
        bail!("--tool needs the name of its server");
    }
    let waiting: Vec<&DiscoveredServer> = waiting_servers(parts).collect();
    let mut is_any = !waiting.is_empty();
    let mut is_done = review_servers(parts, args, &waiting)? == ExitCode::SUCCESS;
    for server in parts.gateway.server_names() {
        let waiting = parts.gateway.pending_approvals(&server);
        if !waiting.is_empty() {
            is_any = true;
            is_done &= review_tools(parts, args, &server, &waiting).await? == ExitCode::SUCCESS;
        }
    }
    for server in parts.gateway.health() {
        for problem in &server.problems {
            writeln!(std::io::stderr(), "server {}: {problem}", server.name)?;
        }
    }
    if !is_any {
        writeln!(std::io::stdout(), "nothing waits for approval")?;
    }
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the servers that wait for approval.
fn waiting_servers(parts: &Parts) -> impl Iterator<Item = &DiscoveredServer> {
    parts.named_servers.waiting.iter().filter(|found| found.off.is_none())
}

/// Shows each server's whole entry and asks for approval: the user approves only what is shown.
fn review_servers(
    parts: &Parts,
    args: &ApproveArgs,
    waiting: &[&DiscoveredServer],
) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    let mut is_done = true;
    for found in waiting {
        let Some(pending) = &found.pending else { continue };
        let (name, file) = (&found.config.name, found.config.source.display());
        let what = if pending.is_change() { "has changed" } else { "is new" };
        writeln!(out, "server {name}: its entry in {file}:{} {what}\n", found.line)?;
        show_lines(&pending.diff_lines())?;
        if !args.yes && !confirm(&format!("Let codexec start {name} with this entry?"))? {
            is_done = false;
            continue;
        }
        let written = parts.approvals.approve(pending);
        written.with_context(|| format!("server {name}: the approval cannot be written"))?;
        writeln!(out, "server {name}: approved; codexec starts it when it is needed")?;
    }
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the waiting tools that the user named, or all.
fn select_tools(
    waiting: Vec<PendingApproval>,
    tools: &[String],
) -> anyhow::Result<Vec<PendingApproval>> {
    for tool in tools {
        if waiting.iter().all(|one| one.tool != *tool) {
            let names: Vec<String> = waiting.iter().map(PendingApproval::escaped_name).collect();
            bail!("no tool {tool:?} waits for approval; those that wait: {}", names.join(", "));
        }
    }
    let is_chosen = |one: &PendingApproval| tools.is_empty() || tools.contains(&one.tool);
    Ok(waiting.into_iter().filter(is_chosen).collect())
}

async fn review_tools(
    parts: &Parts,
    args: &ApproveArgs,
    server: &ServerName,
    waiting: &[PendingApproval],
) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    let question = if waiting.is_empty() {
        writeln!(out, "server {server}: nothing waits for approval")?;
        if !args.yes && !std::io::stdin().is_terminal() {
            return Ok(ExitCode::SUCCESS);
        }
        format!("Require your approval for every future change of the tools of {server}?")
    } else {
        let count = count_text(waiting.len());
        writeln!(out, "server {server}: {count} for approval")?;
        for one in waiting {
            show_tool(one)?;
        }
        format!("Let code use these tools of {server}?")
    };
    if !args.yes && !confirm(&question)? {
        return Ok(ExitCode::FAILURE);
    }
    parts.gateway.approve(server, waiting).await?;
    writeln!(out, "server {server}: approved")?;
    Ok(ExitCode::SUCCESS)
}

fn count_text(tools: usize) -> String {
    if tools == 1 { "1 tool waits".to_owned() } else { format!("{tools} tools wait") }
}

/// Shows the whole difference: the user approves only what is shown.
fn show_tool(one: &PendingApproval) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    let what = if one.before.is_some() { "has changed" } else { "is new" };
    writeln!(out, "\n  {} {what}", one.escaped_name())?;
    if one.has_non_ascii_name() {
        writeln!(out, "    ! its name has non-ASCII letters; it may look like another name")?;
    }
    if one.after.is_none() {
        writeln!(out, "    ! its definition is too long to be stored, and cannot be shown")?;
        return Ok(());
    }
    show_lines(&one.diff_lines())
}

fn show_lines(lines: &[DiffLine]) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    if lines.iter().any(|line| line.has_hidden) {
        writeln!(out, "    ! contains invisible characters, shown as \\u{{..}}")?;
    }
    for line in lines {
        let sign = match line.sign {
            DiffSign::Added => '+',
            DiffSign::Removed => '-',
        };
        writeln!(out, "    {sign} {}", line.text)?;
    }
    Ok(())
}

/// Asks a yes/no question. Without a terminal the answer is no.
fn confirm(question: &str) -> std::io::Result<bool> {
    if !std::io::stdin().is_terminal() {
        let hint = "nothing was approved: pass --yes, or run this at a terminal";
        writeln!(std::io::stderr(), "{hint}")?;
        return Ok(false);
    }
    write!(std::io::stdout(), "\n{question} [y/N] ")?;
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
