//! Which languages there are, their interpreters, and what guests find in their environment.

use std::path::{Path, PathBuf};

use codexec_exec::Python;
use codexec_types::Language;

use super::{ConfigError, Place, file};

/// In the order in which we always name them.
pub(super) fn languages(file: &file::Languages) -> Result<Vec<Language>, ConfigError> {
    let Some(names) = &file.enabled else { return Ok(Language::ALL.to_vec()) };
    let named: Result<Vec<Language>, ConfigError> = names
        .iter()
        .map(|name| Language::parse(name).ok_or_else(|| ConfigError::Language(name.clone())))
        .collect();
    let named = named?;
    if named.is_empty() {
        return Err(ConfigError::NoLanguage);
    }
    Ok(Language::ALL.into_iter().filter(|language| named.contains(language)).collect())
}

pub(super) fn python(file: &file::Python, place: &Place) -> Result<Python, ConfigError> {
    let interpreter = whole("python.interpreter", file.interpreter.as_deref(), place)?;
    let venv = whole("python.venv", file.venv.as_deref(), place)?;
    if interpreter.is_some() && venv.is_some() {
        return Err(ConfigError::TwoPythons);
    }
    let preload = match &file.preload {
        Some(names) => names.clone(),
        None => ["numpy", "pandas"].map(str::to_owned).to_vec(),
    };
    match preload.iter().find(|name| !name.split('.').all(is_identifier)) {
        Some(name) => Err(ConfigError::Module(name.clone())),
        None => Ok(Python { interpreter, venv, preload }),
    }
}

pub(super) fn node(file: &file::Node, place: &Place) -> Result<Option<PathBuf>, ConfigError> {
    whole("node.interpreter", file.interpreter.as_deref(), place)
}

/// A name or a relative path would be found by where codexec happens to be started.
pub(super) fn whole(
    key: &'static str,
    path: Option<&Path>,
    place: &Place,
) -> Result<Option<PathBuf>, ConfigError> {
    let Some(path) = path else { return Ok(None) };
    let path = place.expanded(path);
    if path.is_absolute() { Ok(Some(path)) } else { Err(ConfigError::NotWhole { key, path }) }
}

/// A value is a text, or `env:NAME` for a variable of our own. One that is not set is left out.
pub(super) fn environment(
    file: &std::collections::BTreeMap<String, String>,
    place: &Place,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut environment = Vec::new();
    for (name, value) in file {
        if let Some(why) = refused(name) {
            return Err(ConfigError::Variable { name: name.clone(), why });
        }
        if value.contains('\0') {
            let why = "its value has a NUL character; remove it";
            return Err(ConfigError::Variable { name: name.clone(), why });
        }
        match value.strip_prefix("env:") {
            None => environment.push((name.clone(), value.clone())),
            Some(other) => match (place.variable)(other) {
                Some(value) => environment.push((name.clone(), value)),
                None => tracing::warn!(
                    "`environment.{name}` is left out: {other} is not set in codexec's own \
                     environment"
                ),
            },
        }
    }
    Ok(environment)
}

/// Why guests may not get a variable of this name.
fn refused(name: &str) -> Option<&'static str> {
    if !is_identifier(name) {
        return Some("a name has letters, digits and `_`, and does not begin with a digit");
    }
    match name {
        "PATH" | "HOME" | "LANG" | "TERM" => Some("codexec sets it itself"),
        "NODE_OPTIONS" => Some("it changes what Node.js loads before the code"),
        "BASH_ENV" => Some("it makes bash run a file before the code"),
        _ if name.starts_with("LD_") => Some("it changes what every program loads"),
        _ if name.starts_with("PYTHON") => {
            Some("it changes how Python starts; use the settings of [python]")
        }
        _ => None,
    }
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}
