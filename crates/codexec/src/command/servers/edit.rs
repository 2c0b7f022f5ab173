//! Changing our own file. Other programs' files are theirs: we never write them.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codexec_gateway::Found;
use codexec_types::{ServerName, nearest};
use toml_edit::{Array, InlineTable, Item, Table, Value};

use crate::cli::servers::{Add, Name, Transport};
use crate::parts::Parts;
use crate::servers::OwnFile;

pub(super) fn add(parts: &Parts, args: &Add) -> anyhow::Result<ExitCode> {
    let name = ServerName::new(&args.name)?;
    let mut file = OwnFile::open(&parts.own_file)?;
    if file.names(&name) {
        bail!(
            "{} already names {name}; take it out first with `codexec servers remove {name}`",
            file.path().display()
        );
    }
    let mut entry = entry(args)?;
    if file.has(&name) {
        bail!(
            "{} already has settings for {name}; write its `command` or `url` there",
            file.path().display()
        );
    }
    entry.decor_mut().set_prefix("\n");
    file.insert(&name, entry)?;
    let said = parts.sources.own_text(&file.text());
    let about = |server: Option<&str>| server == Some(name.as_str());
    if let Some(problem) = said.problems.iter().find(|problem| about(problem.server.as_deref())) {
        bail!("{}", problem.what);
    }
    if said.servers.iter().all(|found| found.config.name != name) {
        bail!("that is codexec itself, which never lists itself");
    }
    file.write()?;
    say(&format!("{name} is named in {}", file.path().display()))
}

pub(super) fn remove(parts: &Parts, args: &Name) -> anyhow::Result<ExitCode> {
    let name = known(parts, &args.name)?;
    let mut file = OwnFile::open(&parts.own_file)?;
    let named = parts.found.servers.iter().chain(&parts.found.waiting);
    let elsewhere = named
        .into_iter()
        .find(|found| found.config.name == name && found.config.source != parts.own_file);
    if !file.names(&name)
        && let Some(found) = elsewhere
    {
        bail!(
            "{name} is named in {}:{}, and codexec never writes other programs' files; take it out \
             there, or leave it out here with `codexec servers disable {name}`",
            found.config.source.display(),
            found.line
        );
    }
    file.remove(&name)?;
    file.write()?;
    say(&format!("{name} is no longer in {}", file.path().display()))
}

pub(super) fn enable(parts: &Parts, args: &Name) -> anyhow::Result<ExitCode> {
    let name = known(parts, &args.name)?;
    let mut file = OwnFile::open(&parts.own_file)?;
    // What another program's file has switched off needs a word that says otherwise.
    let word = if file.names(&name) { None } else { Some(true) };
    file.set_enabled(&name, word)?;
    file.write()?;
    let is_named = |found: &Found| found.config.name == name;
    if parts.found.waiting.iter().any(is_named) && !parts.found.servers.iter().any(is_named) {
        return say(&format!(
            "{name} is enabled, and waits for your approval: `codexec servers approve {name}`"
        ));
    }
    say(&format!("{name} is used"))
}

pub(super) fn disable(parts: &Parts, args: &Name) -> anyhow::Result<ExitCode> {
    let name = known(parts, &args.name)?;
    let mut file = OwnFile::open(&parts.own_file)?;
    file.set_enabled(&name, Some(false))?;
    file.write()?;
    say(&format!("{name} is left out, whichever file names it"))
}

/// The name of a server that some file names, or that our own has settings for.
pub(super) fn known(parts: &Parts, name: &str) -> anyhow::Result<ServerName> {
    let found = parts.found.servers.iter().chain(&parts.found.waiting);
    let found = found.map(|found| &found.config.name);
    let tuned = parts.found.tunings.iter().map(|tuning| &tuning.name);
    let mut all: Vec<&ServerName> = found.chain(tuned).collect();
    if let Some(known) = all.iter().find(|known| known.as_str() == name) {
        return Ok((*known).clone());
    }
    all.sort();
    all.dedup();
    let near = nearest(name, all.iter().map(|known| known.as_str()), 3);
    let shown: String = name.chars().take(80).collect();
    if near.is_empty() {
        bail!("no file names a server {shown:?}; `codexec servers list` shows all");
    }
    bail!("no file names a server {shown:?}; did you mean {}?", near.join(", "))
}

fn entry(args: &Add) -> anyhow::Result<Table> {
    match (&args.url, args.command.split_first()) {
        (Some(url), _) => remote(args, url),
        (None, Some((command, rest))) => program(args, command, rest),
        (None, None) => bail!("write the program and its arguments after `--`, or a URL"),
    }
}

fn program(args: &Add, command: &str, rest: &[String]) -> anyhow::Result<Table> {
    if !matches!(args.transport, None | Some(Transport::Stdio)) {
        bail!("a program is reached over stdio; for the others write a URL, without `--`");
    }
    if let Some(header) = args.header.first() {
        let name = header.split(':').next().unwrap_or_default();
        bail!("{name:?} is a header, and a program has none; headers are for URLs");
    }
    let mut entry = Table::new();
    entry.insert("command", text(command));
    if !rest.is_empty() {
        entry.insert("args", Item::Value(rest.iter().collect::<Array>().into()));
    }
    pairs(&mut entry, "env", &args.env, '=')?;
    Ok(entry)
}

fn remote(args: &Add, url: &str) -> anyhow::Result<Table> {
    if !url.contains("://") {
        bail!("{url:?} is not a URL; write a program after `--`, like `-- {url}`");
    }
    if args.transport == Some(Transport::Stdio) {
        bail!("a URL is reached over http or sse; for stdio write a program after `--`");
    }
    if let Some(variable) = args.env.first() {
        let name = variable.split('=').next().unwrap_or_default();
        bail!("{name:?} is a variable, and a URL has none; variables are for programs");
    }
    let mut entry = Table::new();
    entry.insert("url", text(url));
    if args.transport == Some(Transport::Sse) {
        entry.insert("type", text("sse"));
    }
    pairs(&mut entry, "headers", &args.header, ':')?;
    Ok(entry)
}

fn pairs(entry: &mut Table, key: &str, given: &[String], separator: char) -> anyhow::Result<()> {
    let mut table = InlineTable::new();
    for pair in given {
        let split = pair.split_once(separator);
        let (name, value) = split
            // Not the whole of it: it may hold a secret.
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

fn say(sentence: &str) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout(), "{sentence}")?;
    Ok(ExitCode::SUCCESS)
}
