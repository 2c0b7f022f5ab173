//! What several commands are given in the same way.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use codexec_types::Language;

pub(super) fn language(name: &str) -> anyhow::Result<Language> {
    Language::parse(name).with_context(|| {
        let names = Language::ALL.map(Language::name).join(", ");
        let short = Language::ALL.map(Language::short).join(", ");
        format!("--language {name:?} is not known; use {names}, or {short}")
    })
}

/// As the file's name ends.
pub(super) fn language_of(file: &Path) -> Option<Language> {
    Language::parse(file.extension()?.to_str()?)
}

pub(super) fn code_in(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let bytes = std::fs::read(file).with_context(|| format!("--file: {shown}"))?;
    let not_text = |_| anyhow::anyhow!("--file: {shown} is not UTF-8; save it as UTF-8");
    String::from_utf8(bytes).map_err(not_text)
}

/// `ways` tells how else it can be given.
pub(super) fn code_on_standard_input(ways: &str) -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        bail!("no code: give it {ways}on standard input");
    }
    let mut code = String::new();
    std::io::stdin().read_to_string(&mut code).context("standard input is not UTF-8")?;
    Ok(code)
}

/// A person may write it from where they are.
pub(super) fn working_dir(dir: &Path) -> anyhow::Result<PathBuf> {
    let whole = std::path::absolute(dir).with_context(|| dir.display().to_string());
    let whole = whole.context("--working-dir")?;
    match whole.canonicalize() {
        Ok(real) => Ok(real),
        // What is not there has no `..` to be told of.
        Err(error) if whole.components().any(|part| part == Component::ParentDir) => {
            Err(error).with_context(|| format!("--working-dir: {}", dir.display()))
        }
        Err(_) => Ok(whole),
    }
}

/// `--allowed-tools ""` is how a shell says: none.
pub(super) fn patterns(given: Option<Vec<String>>) -> Option<Vec<String>> {
    given.map(|list| list.into_iter().filter(|pattern| !pattern.is_empty()).collect())
}

pub(super) fn milliseconds(duration: Option<Duration>) -> Option<u64> {
    duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
