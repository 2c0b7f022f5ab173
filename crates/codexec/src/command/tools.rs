mod stats;

use std::io::Write as _;
use std::process::ExitCode;

use codexec_gateway::{Detail, SearchQuery, ServerState, Voice};
use codexec_server::tool_text;

use crate::cli::{DetailArg, FormArg, Tools};
use crate::parts::Parts;

pub(super) async fn run(parts: &Parts, args: Tools) -> anyhow::Result<ExitCode> {
    let code = answer(parts, args).await;
    parts.gateway.shutdown().await;
    code
}

async fn answer(parts: &Parts, args: Tools) -> anyhow::Result<ExitCode> {
    let (gateway, allowed) = (&parts.gateway, &parts.config.policy.tools);
    let mut out = std::io::stdout();
    match args {
        Tools::List { json, .. } => {
            let tools = gateway.list(allowed).await;
            if json {
                writeln!(out, "{}", serde_json::to_string(&tools)?)?;
            } else {
                for tool in &tools {
                    writeln!(out, "{}", tool_text(tool))?;
                }
            }
            complain(parts)?;
        }
        Tools::Search { query, limit, detail, server, json, .. } => {
            if let Some(name) = &server
                && gateway.server_names().iter().all(|known| known.as_str() != name)
            {
                let names: Vec<String> =
                    gateway.server_names().iter().map(ToString::to_string).collect();
                let names = names.join(", ");
                writeln!(std::io::stderr(), "no server {name:?}; the servers are {names}")?;
                return Ok(ExitCode::FAILURE);
            }
            let detail = match detail {
                DetailArg::Names => Detail::Names,
                DetailArg::Summary => Detail::Summary,
                DetailArg::Full => Detail::Full,
            };
            let query = SearchQuery { text: query.join(" "), limit, detail, server };
            let found = gateway.search(&query, allowed).await;
            if json {
                writeln!(out, "{}", serde_json::to_string(&found.tools)?)?;
            } else {
                for tool in &found.tools {
                    writeln!(out, "{}", tool_text(tool))?;
                }
            }
            complain(parts)?;
            if found.tools.is_empty() {
                writeln!(std::io::stderr(), "no tool matches; try other words")?;
                return Ok(ExitCode::FAILURE);
            }
        }
        Tools::Stats { json, .. } => {
            stats::print(parts, json).await?;
            complain(parts)?;
        }
        Tools::Schema { name, form, json, .. } => {
            let voice = match form {
                Some(FormArg::Python) => Voice::Python,
                Some(FormArg::Typescript | FormArg::Json) | None => Voice::TypeScript,
            };
            let tool = match gateway.schema(&name, allowed, voice).await {
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
                None if json => serde_json::to_string(&tool)?,
                None => tool_text(&tool),
            };
            writeln!(out, "{text}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A list that is not whole says so.
fn complain(parts: &Parts) -> std::io::Result<()> {
    for server in parts.gateway.health() {
        let name = &server.name;
        if server.held > 0 {
            let held = server.held;
            writeln!(
                std::io::stderr(),
                "server {name}: {held} of its tools wait for approval; look at them with \
                 `codexec servers approve {name}`"
            )?;
        }
        if server.stale {
            writeln!(std::io::stderr(), "server {name}: its list is more than a day old")?;
        }
        match (server.state, server.error) {
            (_, Some(error)) => writeln!(std::io::stderr(), "server {}: {error}", server.name)?,
            (ServerState::Starting, None) => {
                writeln!(std::io::stderr(), "server {}: it is still starting", server.name)?;
            }
            (ServerState::Idle | ServerState::Ready | ServerState::Failed, None) => {}
        }
    }
    Ok(())
}
