//! Copies servers from other programs' files to `config.toml`.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codexec_mcp_config::{ConfigOwner, DiscoveredServer};
use toml_edit::{DocumentMut, Item, Table};

use super::edit::resolve_server;
use crate::cli::servers::ImportArgs;
use crate::parts::Parts;
use crate::server_files::ConfigEditor;

/// The keys that come first, in this order.
const KEYS: [&str; 6] = ["command", "args", "url", "type", "env", "headers"];

pub(super) fn run(parts: &mut Parts, args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let found = parts.sources.read_references();
    for name in &args.names {
        let name = resolve_server(parts, name)?;
        if found.servers.iter().all(|server| server.config.name != name) {
            bail!("{name} waits for your approval: `codexec servers approve {name}`");
        }
    }
    let mut file = ConfigEditor::open(&parts.own_file)?;
    let chosen: Vec<&DiscoveredServer> =
        found.servers.iter().filter(|server| is_chosen(server, args)).collect();
    let mut out = std::io::stdout();
    let mut is_changed = false;
    for server in chosen {
        let (name, place) = (&server.config.name, server.config.source.display());
        if file.has(name) {
            let own = file.path().display();
            writeln!(out, "{name}: left out, because {own} has an entry for it")?;
            continue;
        }
        let (entry, notes) = codexec_compat::server_table(server);
        file.insert(name, to_edit_table(&entry)?)?;
        is_changed = true;
        writeln!(out, "{name}: copied from {place}:{}", server.line)?;
        for note in notes {
            writeln!(out, "{name}: {note}")?;
        }
    }
    if !is_changed {
        writeln!(out, "nothing to import; `codexec servers list` shows where servers are named")?;
        return Ok(ExitCode::SUCCESS);
    }
    file.write()?;
    let own = file.path().display();
    writeln!(out, "{own} names these servers now; you can remove them from the other files")?;
    Ok(ExitCode::SUCCESS)
}

fn is_chosen(server: &DiscoveredServer, args: &ImportArgs) -> bool {
    let name = server.config.name.as_str();
    let is_client = args.from.as_deref().is_none_or(|client| client == server.client.name());
    let is_named = args.names.is_empty() || args.names.iter().any(|given| given == name);
    server.client != ConfigOwner::Codexec && is_client && is_named
}

fn to_edit_table(entry: &toml::Table) -> anyhow::Result<Table> {
    let text = toml::to_string(entry).context("cannot write the entry as TOML")?;
    let document: DocumentMut = text.parse().context("cannot write the entry as TOML")?;
    let mut entries: Vec<(&str, &Item)> = document.iter().collect();
    entries
        .sort_by_key(|(key, _)| KEYS.iter().position(|first| first == key).unwrap_or(KEYS.len()));
    let mut table = Table::new();
    for (key, item) in entries {
        let mut item = item.clone();
        if let Some(inner) = item.as_table().cloned() {
            item = toml_edit::value(inner.into_inline_table());
        }
        table.insert(key, item);
    }
    table.decor_mut().set_prefix("\n");
    Ok(table)
}
