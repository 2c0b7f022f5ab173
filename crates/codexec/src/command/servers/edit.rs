//! Edits `config.toml`. codexec never writes other programs' files.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codexec_mcp_config::DiscoveredServer;
use codexec_types::{ServerName, find_nearest_names};
use toml_edit::{Array, InlineTable, Item, Table, Value};

use crate::cli::servers::{AddArgs, NameArgs, Transport};
use crate::parts::Parts;
use crate::server_files::ConfigEditor;

pub(super) fn add(parts: &Parts, args: &AddArgs) -> anyhow::Result<ExitCode> {
    let name = ServerName::new(&args.name)?;
    let mut file = ConfigEditor::open(&parts.own_file)?;
    if file.defines(&name) {
        bail!(
            "{} already names {name}; remove it first with `codexec servers remove {name}`",
            file.path().display()
        );
    }
    let mut entry = build_entry(args)?;
    if file.has(&name) {
        bail!(
            "{} already has settings for {name}; write its `command` or `url` there",
            file.path().display()
        );
    }
    entry.decor_mut().set_prefix("\n");
    file.insert(&name, entry)?;
    let parsed = parts.sources.parse_own_text(&file.text());
    let about = |server: Option<&str>| server == Some(name.as_str());
    if let Some(problem) = parsed.problems.iter().find(|problem| about(problem.server.as_deref())) {
        bail!("{}", problem.what);
    }
    if parsed.servers.iter().all(|found| found.config.name != name) {
        bail!("this command starts codexec itself, which cannot be its own server");
    }
    file.write()?;
    print_line(&format!("{name} is added to {}", file.path().display()))
}

pub(super) fn remove(parts: &Parts, args: &NameArgs) -> anyhow::Result<ExitCode> {
    let name = resolve_server(parts, &args.name)?;
    let mut file = ConfigEditor::open(&parts.own_file)?;
    let named = parts.named_servers.servers.iter().chain(&parts.named_servers.waiting);
    let elsewhere = named
        .into_iter()
        .find(|found| found.config.name == name && found.config.source != parts.own_file);
    if !file.defines(&name)
        && let Some(found) = elsewhere
    {
        bail!(
            "{name} is named in {}:{}, and codexec never writes other programs' files; remove it \
             there, or disable it with `codexec servers disable {name}`",
            found.config.source.display(),
            found.line
        );
    }
    file.remove(&name)?;
    file.write()?;
    print_line(&format!("{name} is removed from {}", file.path().display()))
}

pub(super) fn enable(parts: &mut Parts, args: &NameArgs) -> anyhow::Result<ExitCode> {
    let name = resolve_server(parts, &args.name)?;
    let mut file = ConfigEditor::open(&parts.own_file)?;
    let was_off_here = file.disables(&name);
    file.clear_enabled(&name)?;
    file.write()?;
    let is_off = |found: &DiscoveredServer| found.config.name == name && found.off.is_some();
    let is_off_elsewhere = !was_off_here || parts.sources.read().servers.iter().any(is_off);
    if !file.defines(&name) && is_off_elsewhere {
        // Another program's file disables the server, or another toolset replaces it.
        file.set_enabled(&name, Some(true))?;
        file.write()?;
    }
    let is_named = |found: &DiscoveredServer| found.config.name == name;
    if parts.named_servers.waiting.iter().any(is_named)
        && !parts.named_servers.servers.iter().any(is_named)
    {
        return print_line(&format!(
            "{name} is enabled, and waits for your approval: `codexec servers approve {name}`"
        ));
    }
    print_line(&format!("{name} is enabled"))
}

pub(super) fn disable(parts: &Parts, args: &NameArgs) -> anyhow::Result<ExitCode> {
    let name = resolve_server(parts, &args.name)?;
    let mut file = ConfigEditor::open(&parts.own_file)?;
    file.set_enabled(&name, Some(false))?;
    file.write()?;
    print_line(&format!("{name} is disabled, whichever file names it"))
}

/// Returns the name of a server that some file names, or that our own has settings for.
pub(super) fn resolve_server(parts: &Parts, name: &str) -> anyhow::Result<ServerName> {
    let found = parts.named_servers.servers.iter().chain(&parts.named_servers.waiting);
    let found = found.map(|found| &found.config.name);
    let tuned = parts.named_servers.tunings.iter().map(|tuning| &tuning.name);
    let mut all: Vec<&ServerName> = found.chain(tuned).collect();
    if let Some(known) = all.iter().find(|known| known.as_str() == name) {
        return Ok((*known).clone());
    }
    all.sort();
    all.dedup();
    let near = find_nearest_names(name, all.iter().map(|known| known.as_str()), 3);
    let shown: String = name.chars().take(80).collect();
    if near.is_empty() {
        bail!("no file names a server {shown:?}; `codexec servers list` shows all");
    }
    bail!("no file names a server {shown:?}; did you mean {}?", near.join(", "))
}

fn build_entry(args: &AddArgs) -> anyhow::Result<Table> {
    match (&args.url, args.command.split_first()) {
        (Some(url), _) => remote_entry(args, url),
        (None, Some((command, rest))) => program_entry(args, command, rest),
        (None, None) => bail!("write the program and its arguments after `--`, or a URL"),
    }
}

fn program_entry(args: &AddArgs, command: &str, rest: &[String]) -> anyhow::Result<Table> {
    if !matches!(args.transport, None | Some(Transport::Stdio)) {
        bail!("a program is reached over stdio; for http or sse write a URL, without `--`");
    }
    if let Some(header) = args.header.first() {
        let name = header.split(':').next().unwrap_or_default();
        bail!("the header {name:?} is for a URL; a program has no headers");
    }
    let mut entry = Table::new();
    entry.insert("command", text(command));
    if !rest.is_empty() {
        entry.insert("args", Item::Value(rest.iter().collect::<Array>().into()));
    }
    add_pairs(&mut entry, "env", &args.env, '=')?;
    Ok(entry)
}

fn remote_entry(args: &AddArgs, url: &str) -> anyhow::Result<Table> {
    if !url.contains("://") {
        bail!("{url:?} is not a URL; write a program after `--`, like `-- {url}`");
    }
    if args.transport == Some(Transport::Stdio) {
        bail!("a URL is reached over http or sse; for stdio write a program after `--`");
    }
    if let Some(variable) = args.env.first() {
        let name = variable.split('=').next().unwrap_or_default();
        bail!("the variable {name:?} is for a program; a URL has no variables");
    }
    let mut entry = Table::new();
    entry.insert("url", text(url));
    if args.transport == Some(Transport::Sse) {
        entry.insert("type", text("sse"));
    }
    add_pairs(&mut entry, "headers", &args.header, ':')?;
    Ok(entry)
}

fn add_pairs(
    entry: &mut Table,
    key: &str,
    given: &[String],
    separator: char,
) -> anyhow::Result<()> {
    let mut table = InlineTable::new();
    for pair in given {
        let split = pair.split_once(separator);
        let (name, value) = split
            // The message leaves the value out: it may be a secret.
            .with_context(|| format!("an entry for `{key}` has no {separator:?} in it"))?;
        table.insert(name.trim(), value.trim().into());
    }
    if !table.is_empty() {
        entry.insert(key, Item::Value(Value::InlineTable(table)));
    }
    Ok(())
}

fn text(text: &str) -> Item {
    Item::Value(Value::from(text))
}

fn print_line(sentence: &str) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout(), "{sentence}")?;
    Ok(ExitCode::SUCCESS)
}
