//! Expands the variables in an entry's strings, in the syntax of each client.

use std::path::Path;

use super::{ConfigSource, pending::ReadFile};

/// A client's syntax for variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    None,
    /// `${VAR}` and `${VAR:-default}`. An unset variable stays as written.
    Braces,
    /// `${env:VAR}`, `${userHome}`, `${workspaceFolder}` and so on; an unset variable is empty.
    /// For `${input:id}`, the client prompts the user.
    Editor,
    /// `${env:VAR}`; an unset variable is empty. `${keyring:name}` is in MCPProxy's own keyring.
    Proxy,
    /// `$VAR` and `${VAR}`. An unset variable is empty.
    Dollar,
    /// `{env:VAR}` and `{file:path}`. An unset variable or missing file is empty.
    Curly,
}

/// The variables without a value, and the files, found while an entry's strings were expanded.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Expansion {
    /// Unset variables, as written.
    pub(super) unset: Vec<String>,
    /// Variables for which only the client can prompt the user.
    pub(super) user_inputs: Vec<String>,
    /// Variables in another program's keyring.
    pub(super) foreign_keyring: Vec<String>,
    /// Files whose text was inserted.
    pub(super) files: Vec<ReadFile>,
}

pub(super) fn expand(
    text: &str,
    syntax: VariableSyntax,
    scope: &ConfigSource<'_>,
    found: &mut Expansion,
) -> String {
    match syntax {
        VariableSyntax::None => text.to_owned(),
        VariableSyntax::Braces => {
            replace_all(text, "${", |inside| expand_braces(inside, scope, found))
        }
        VariableSyntax::Editor => {
            replace_all(text, "${", |inside| expand_editor(inside, scope, found))
        }
        VariableSyntax::Proxy => {
            replace_all(text, "${", |inside| expand_proxy(inside, scope, found))
        }
        VariableSyntax::Dollar => expand_dollars(text, scope, found),
        VariableSyntax::Curly => {
            replace_all(text, "{", |inside| expand_curly(inside, scope, found))
        }
    }
}

/// Replaces everything between `open` and `}` with its value; `None` leaves it as written.
fn replace_all(text: &str, open: &str, mut value: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        out.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            out.push_str(open);
            rest = after;
            break;
        };
        match value(inside) {
            Some(value) => out.push_str(&value),
            None => out.extend([open, inside, "}"]),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

fn expand_braces(inside: &str, scope: &ConfigSource<'_>, found: &mut Expansion) -> Option<String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let value = (scope.world.variable)(name).or_else(|| default.map(str::to_owned));
    if value.is_none() {
        found.unset.push(format!("${{{name}}}"));
    }
    value
}

fn expand_editor(inside: &str, scope: &ConfigSource<'_>, found: &mut Expansion) -> Option<String> {
    let to_text = |path: Option<&Path>| path.map(|path| path.display().to_string());
    if let Some(name) = inside.strip_prefix("env:") {
        return Some(lookup_variable(name, &format!("${{{inside}}}"), scope, found));
    }
    match inside {
        "userHome" => to_text(scope.world.home),
        "workspaceFolder" => to_text(scope.world.here),
        "workspaceFolderBasename" => {
            to_text(scope.world.here.and_then(|here| here.file_name()).map(Path::new))
        }
        "pathSeparator" | "/" => Some("/".to_owned()),
        _ if inside.starts_with("input:") || inside.starts_with("command:") => {
            found.user_inputs.push(format!("${{{inside}}}"));
            None
        }
        _ => None,
    }
}

fn expand_proxy(inside: &str, scope: &ConfigSource<'_>, found: &mut Expansion) -> Option<String> {
    let written = || format!("${{{inside}}}");
    if let Some(name) = inside.strip_prefix("env:") {
        return Some(lookup_variable(name, &written(), scope, found));
    }
    if inside.starts_with("keyring:") {
        found.foreign_keyring.push(written());
    }
    None
}

fn expand_curly(inside: &str, scope: &ConfigSource<'_>, found: &mut Expansion) -> Option<String> {
    let written = || format!("{{{inside}}}");
    if let Some(name) = inside.strip_prefix("env:") {
        return Some(lookup_variable(name, &written(), scope, found));
    }
    let path = inside.strip_prefix("file:")?;
    let path = match (path.strip_prefix("~/"), scope.world.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => scope.source.parent().unwrap_or(Path::new("")).join(path),
    };
    let text = (scope.world.text_of)(&path);
    if text.is_none() {
        found.unset.push(written());
    }
    let text = text.unwrap_or_default();
    found.files.push((path, text.clone()));
    Some(text.trim().to_owned())
}

/// Expands `$VAR` and `${VAR}`, the latter also with a default.
fn expand_dollars(text: &str, scope: &ConfigSource<'_>, found: &mut Expansion) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after.strip_prefix('{').and_then(|after| after.split_once('}'));
        if let Some((inside, behind)) = braced {
            let (name, default) = inside.split_once(":-").unwrap_or((inside, ""));
            match (scope.world.variable)(name) {
                Some(value) => out.push_str(&value),
                None if default.is_empty() => found.unset.push(format!("${{{name}}}")),
                None => out.push_str(default),
            }
            rest = behind;
            continue;
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = after.find(|c: char| !is_part(c)).unwrap_or(after.len());
        let (name, behind) = after.split_at_checked(length).unwrap_or((after, ""));
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            out.push('$');
            rest = after;
            continue;
        }
        out.push_str(&lookup_variable(name, &format!("${name}"), scope, found));
        rest = behind;
    }
    out.push_str(rest);
    out
}

fn lookup_variable(
    name: &str,
    written: &str,
    scope: &ConfigSource<'_>,
    found: &mut Expansion,
) -> String {
    let value = (scope.world.variable)(name);
    if value.is_none() {
        found.unset.push(written.to_owned());
    }
    value.unwrap_or_default()
}
