//! Changing our own file. Other programs' files are theirs: we never write them.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
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
    let had_own = file.has(&name);
    let mut entry = entry(args)?;
    if had_own {
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
    let elsewhere = parts
        .found
        .servers
        .iter()
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
    let found = parts.found.servers.iter().map(|found| &found.config.name);
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
    let mut entry = Table::new();
    let Some((first, rest)) = args.command.split_first() else {
        bail!("write the program and its arguments after `--`, or a URL");
    };
    let is_url = first.starts_with("http://") || first.starts_with("https://");
    let transport =
        args.transport.unwrap_or(if is_url { Transport::Http } else { Transport::Stdio });
    if transport == Transport::Stdio {
        if let Some(header) = args.header.first() {
            bail!("{header:?} is a header, and a program has none; headers are for URLs");
        }
        entry.insert("command", text(first));
        if !rest.is_empty() {
            entry.insert("args", Item::Value(rest.iter().collect::<Array>().into()));
        }
        pairs(&mut entry, "env", &args.env, '=')?;
        return Ok(entry);
    }
    if !rest.is_empty() {
        bail!("{:?} follows the URL, and nothing may", rest.join(" "));
    }
    if let Some(variable) = args.env.first() {
        bail!("{variable:?} is a variable, and a URL has none; variables are for programs");
    }
    entry.insert("url", text(first));
    if transport == Transport::Sse {
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
