//! The enabled languages, their interpreters, and the environment of guests.

use std::path::{Path, PathBuf};

use codexec_exec::{GuestSettings, PythonSettings};
use codexec_types::Language;

use super::{ConfigError, HostEnvironment, file};

/// Returns the enabled languages in the order of `Language::ALL`.
pub(super) fn languages(file: &file::LanguagesSection) -> Result<Vec<Language>, ConfigError> {
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

/// Returns the interpreters and the environment of guests.
pub(super) fn guests(
    file: &file::ConfigFile,
    host: &HostEnvironment,
) -> Result<GuestSettings, ConfigError> {
    Ok(GuestSettings {
        python: python(&file.python, host)?,
        node: node(&file.node, host)?,
        environment: environment(&file.environment, host)?,
    })
}

fn python(
    file: &file::PythonSection,
    host: &HostEnvironment,
) -> Result<PythonSettings, ConfigError> {
    let interpreter = absolute_path("python.interpreter", file.interpreter.as_deref(), host)?;
    let venv = absolute_path("python.venv", file.venv.as_deref(), host)?;
    if interpreter.is_some() && venv.is_some() {
        return Err(ConfigError::TwoPythons);
    }
    let preload = match &file.preload {
        Some(names) => names.clone(),
        None => ["numpy", "pandas"].map(str::to_owned).to_vec(),
    };
    match preload.iter().find(|name| !name.split('.').all(is_identifier)) {
        Some(name) => Err(ConfigError::Module(name.clone())),
        None => Ok(PythonSettings { interpreter, venv, preload }),
    }
}

fn node(file: &file::NodeSection, host: &HostEnvironment) -> Result<Option<PathBuf>, ConfigError> {
    absolute_path("node.interpreter", file.interpreter.as_deref(), host)
}

/// Expands `~` and refuses relative paths, whose meaning would depend on where codexec starts.
pub(super) fn absolute_path(
    key: &'static str,
    path: Option<&Path>,
    host: &HostEnvironment,
) -> Result<Option<PathBuf>, ConfigError> {
    let Some(path) = path else { return Ok(None) };
    let path = host.expand_home(path);
    if path.is_absolute() { Ok(Some(path)) } else { Err(ConfigError::RelativePath { key, path }) }
}

/// Returns the guests' variables. A value `env:NAME` is replaced by codexec's own variable, and
/// left out if that is not set.
fn environment(
    file: &std::collections::BTreeMap<String, String>,
    host: &HostEnvironment,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut environment = Vec::new();
    for (name, value) in file {
        if let Some(why) = refusal_reason(name) {
            return Err(ConfigError::Variable { name: name.clone(), why });
        }
        if value.contains('\0') {
            let why = "its value has a NUL character; remove it";
            return Err(ConfigError::Variable { name: name.clone(), why });
        }
        match value.strip_prefix("env:") {
            None => environment.push((name.clone(), value.clone())),
            Some(other) => match (host.variable)(other) {
                Some(value) => environment.push((name.clone(), value)),
                None => tracing::warn!(
                    "`environment.{name}` is ignored: {other} is not set in codexec's own \
                     environment"
                ),
            },
        }
    }
    Ok(environment)
}

/// Returns why guests may not get a variable of this name.
fn refusal_reason(name: &str) -> Option<&'static str> {
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
