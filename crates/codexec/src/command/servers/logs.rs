use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use codexec_gateway::read_server_log;
use codexec_mcp_config::TransportConfig;

use super::edit::resolve_server;
use crate::cli::servers::LogsArgs;
use crate::parts::Parts;

pub(super) fn run(parts: &Parts, args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let name = resolve_server(parts, &args.name)?;
    let log = read_server_log(&parts.home, &name, args.lines);
    let log = log.with_context(|| format!("cannot read the log of {name}"))?;
    if log.is_empty() {
        let found = parts.named_servers.servers.iter().find(|found| found.config.name == name);
        let is_remote =
            found.is_some_and(|found| matches!(found.config.transport, TransportConfig::Remote(_)));
        let why =
            if is_remote { "it is a remote server" } else { "it has written nothing to stderr" };
        writeln!(std::io::stderr(), "there is no log of {name}: {why}")?;
    }
    write!(std::io::stdout(), "{log}")?;
    Ok(ExitCode::SUCCESS)
}
