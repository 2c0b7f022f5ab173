mod stats;

use std::io::Write as _;
use std::process::ExitCode;

use codexec_gateway::{SearchQuery, ServerState, ToolInfo};
use codexec_server::render_tool;
use codexec_types::{CallCode, ServerName, ToolKind};
use codexec_typings::TypingsLanguage;

use super::server_progress::{FailureReport, ReportedServers, run_with_server_progress};
use super::terminal_text::{one_line, table};
use crate::cli::{FormArg, ToolsCommand};
use crate::parts::Parts;

/// The most characters of a cell.
const MAX_CHARS: usize = 200;

pub(super) async fn run(parts: &Parts, args: ToolsCommand) -> anyhow::Result<ExitCode> {
    let code = execute(parts, args).await;
    parts.gateway.shutdown().await;
    code
}

async fn execute(parts: &Parts, args: ToolsCommand) -> anyhow::Result<ExitCode> {
    match args {
        ToolsCommand::List { json, verbose, .. } => {
            let listing = parts.gateway.list(&parts.config.policy.tools);
            let (tools, reported) = with_progress(parts, listing).await;
            match json || verbose {
                true => print(&tools, json)?,
                false => print_table(&tools)?,
            }
            warn_about_servers(parts, &reported)?;
            Ok(ExitCode::SUCCESS)
        }
        ToolsCommand::Search { query, limit, detail, server, kind, json, .. } => {
            let (detail, kind) = (detail.into(), kind.map_or(ToolKind::Any, Into::into));
            let query = SearchQuery { text: query.join(" "), limit, detail, server, kind };
            search(parts, &query, json).await
        }
        ToolsCommand::Stats { json, .. } => {
            let printing = stats::print(parts, json);
            let (printed, reported) = with_progress(parts, printing).await;
            printed?;
            warn_about_servers(parts, &reported)?;
            Ok(ExitCode::SUCCESS)
        }
        ToolsCommand::Schema { name, form, json, .. } => {
            let form = if json { Some(FormArg::Json) } else { form };
            schema(parts, &name, form).await
        }
    }
}

async fn with_progress<T>(parts: &Parts, work: impl Future<Output = T>) -> (T, ReportedServers) {
    run_with_server_progress(&parts.gateway, FailureReport::AtOnce, work).await
}

async fn search(parts: &Parts, query: &SearchQuery, json: bool) -> anyhow::Result<ExitCode> {
    let mut err = std::io::stderr();
    let searching = parts.gateway.search(query, &parts.config.policy.tools);
    let (found, reported) = with_progress(parts, searching).await;
    let found = match found {
        Ok(found) => found,
        Err(error) if error.code == CallCode::ToolNotFound => {
            let name = query.server.as_deref().unwrap_or_default();
            let names = parts.gateway.server_names();
            let names: Vec<&str> = names.iter().map(ServerName::as_str).collect();
            writeln!(err, "no server {name:?}; the servers are {}", names.join(", "))?;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => {
            writeln!(err, "{}", error.message)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    print(&found.tools, json)?;
    warn_about_servers(parts, &reported)?;
    if found.tools.is_empty() {
        writeln!(err, "no tool matches; try other words")?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

async fn schema(parts: &Parts, name: &str, form: Option<FormArg>) -> anyhow::Result<ExitCode> {
    let voice = match form {
        Some(FormArg::Python) => TypingsLanguage::Python,
        Some(FormArg::Typescript | FormArg::Json) | None => TypingsLanguage::TypeScript,
    };
    let tool = match parts.gateway.schema(name, &parts.config.policy.tools, voice).await {
        Ok(tool) => tool,
        Err(error) => {
            writeln!(std::io::stderr(), "{}", error.message)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let text = match form {
        Some(FormArg::Typescript) => tool.typescript.unwrap_or_default(),
        Some(FormArg::Python) => tool.python.unwrap_or_default(),
        Some(FormArg::Json) => serde_json::to_string(&tool)?,
        None => render_tool(&tool),
    };
    writeln!(std::io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

fn print(tools: &[ToolInfo], json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    if json {
        writeln!(out, "{}", serde_json::to_string(tools)?)?;
        return Ok(());
    }
    for tool in tools {
        writeln!(out, "{}", render_tool(tool))?;
    }
    Ok(())
}

fn print_table(tools: &[ToolInfo]) -> anyhow::Result<()> {
    if tools.is_empty() {
        writeln!(std::io::stderr(), "no tools; add a server with `codexec servers add`")?;
        return Ok(());
    }
    let row = |tool: &ToolInfo| {
        let about = tool.description.as_deref().unwrap_or_default();
        vec![one_line(&tool.name, MAX_CHARS), one_line(about, MAX_CHARS)]
    };
    let rows: Vec<Vec<String>> = tools.iter().map(row).collect();
    write!(std::io::stdout(), "{}", table(&["TOOL", "WHAT IT DOES"], &rows))?;
    Ok(())
}

/// Warns about servers whose tools are missing or outdated in the list.
fn warn_about_servers(parts: &Parts, reported: &ReportedServers) -> std::io::Result<()> {
    for name in parts.named_servers.waiting_names() {
        writeln!(
            std::io::stderr(),
            "server {name}: waiting for approval; review it with `codexec servers approve {name}`"
        )?;
    }
    for server in parts.gateway.health() {
        let name = &server.name;
        if server.held > 0 {
            let held = server.held;
            writeln!(
                std::io::stderr(),
                "server {name}: {held} of its tools wait for approval; review them with \
                 `codexec servers approve {name}`"
            )?;
        }
        if server.stale {
            writeln!(std::io::stderr(), "server {name}: its tool list is more than a day old")?;
        }
        match (server.state, server.error) {
            (_, Some(_)) if reported.has_failed(name) => {}
            (_, Some(error)) => writeln!(std::io::stderr(), "server {}: {error}", server.name)?,
            (ServerState::Starting, None) => {
                writeln!(std::io::stderr(), "server {}: still starting", server.name)?;
            }
            (
                ServerState::Idle
                | ServerState::Ready
                | ServerState::NeedsLogin
                | ServerState::Failed,
                None,
            ) => {}
        }
    }
    Ok(())
}
