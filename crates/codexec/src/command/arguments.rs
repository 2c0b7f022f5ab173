//! Arguments that several commands share.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use codexec_types::Language;

pub(super) fn parse_language(name: &str) -> anyhow::Result<Language> {
    Language::parse(name).with_context(|| {
        let names = Language::ALL.map(Language::name).join(", ");
        let short = Language::ALL.map(Language::short).join(", ");
        format!("unknown --language {name:?}; use {names}, or {short}")
    })
}

/// Returns the language of the file's extension.
pub(super) fn language_of(file: &Path) -> Option<Language> {
    Language::parse(file.extension()?.to_str()?)
}

pub(super) fn read_code(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let bytes = std::fs::read(file).with_context(|| format!("--file: {shown}"))?;
    let not_text = |_| anyhow::anyhow!("--file: {shown} is not UTF-8; save it as UTF-8");
    String::from_utf8(bytes).map_err(not_text)
}

/// Reads the code from stdin. `ways` names the other ways to pass it, for the error message.
pub(super) fn read_code_from_stdin(ways: &str) -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        bail!("no code: give it {ways}on standard input");
    }
    let mut code = String::new();
    std::io::stdin().read_to_string(&mut code).context("standard input is not UTF-8")?;
    Ok(code)
}

/// Makes the directory absolute and resolves links.
pub(super) fn absolute_dir(dir: &Path) -> anyhow::Result<PathBuf> {
    // A `~` that the shell has left alone; the server expands it.
    if dir.starts_with("~") {
        return Ok(dir.to_owned());
    }
    let absolute = std::path::absolute(dir).with_context(|| dir.display().to_string());
    let absolute = absolute.context("--working-dir")?;
    match absolute.canonicalize() {
        Ok(real) => Ok(real),
        // `..` cannot be resolved in a missing directory.
        Err(error) if absolute.components().any(|part| part == Component::ParentDir) => {
            Err(error).with_context(|| format!("--working-dir: {}", dir.display()))
        }
        Err(_) => Ok(absolute),
    }
}

/// Drops empty patterns: `--allowed-tools ""` means none.
pub(super) fn drop_empty(given: Option<Vec<String>>) -> Option<Vec<String>> {
    given.map(|list| list.into_iter().filter(|pattern| !pattern.is_empty()).collect())
}

pub(super) fn milliseconds(duration: Option<Duration>) -> Option<u64> {
    duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
