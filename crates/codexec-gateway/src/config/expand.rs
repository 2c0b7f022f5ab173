//! What stands for a value that is kept elsewhere, as each client writes it.

use std::path::Path;

use super::{Scope, pending::ReadFile};

/// A client's way to write variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variables {
    None,
    /// `${VAR}` and `${VAR:-default}`. What is not set stays as written.
    Braces,
    /// `${env:VAR}`, `${userHome}`, `${workspaceFolder}` and the like; what is not set is empty.
    /// `${input:id}` is asked of the user.
    Editor,
    /// `${env:VAR}`; what is not set is empty. `${keyring:name}` is kept where only MCPProxy looks.
    Proxy,
    /// `$VAR` and `${VAR}`. What is not set is empty.
    Dollar,
    /// `{env:VAR}` and `{file:path}`. What is not set is empty.
    Curly,
}

/// What was found out while texts were filled in.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Gaps {
    /// What is not set, as written.
    pub(super) unset: Vec<String>,
    /// What only the client itself can ask for.
    pub(super) asked: Vec<String>,
    /// What is in a keyring of another program.
    pub(super) locked: Vec<String>,
    /// Files that were read.
    pub(super) read: Vec<ReadFile>,
}

pub(super) fn expand(text: &str, style: Variables, scope: &Scope<'_>, gaps: &mut Gaps) -> String {
    match style {
        Variables::None => text.to_owned(),
        Variables::Braces => filled(text, "${", |inside| braces(inside, scope, gaps)),
        Variables::Editor => filled(text, "${", |inside| editor(inside, scope, gaps)),
        Variables::Proxy => filled(text, "${", |inside| proxy(inside, scope, gaps)),
        Variables::Dollar => dollars(text, scope, gaps),
        Variables::Curly => filled(text, "{", |inside| curly(inside, scope, gaps)),
    }
}

/// Replaces what stands between `open` and `}`; `None` leaves it as written.
fn filled(text: &str, open: &str, mut value: impl FnMut(&str) -> Option<String>) -> String {
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

fn braces(inside: &str, scope: &Scope<'_>, gaps: &mut Gaps) -> Option<String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let value = (scope.world.variable)(name).or_else(|| default.map(str::to_owned));
    if value.is_none() {
        gaps.unset.push(format!("${{{name}}}"));
    }
    value
}

fn editor(inside: &str, scope: &Scope<'_>, gaps: &mut Gaps) -> Option<String> {
    let shown = |path: Option<&Path>| path.map(|path| path.display().to_string());
    if let Some(name) = inside.strip_prefix("env:") {
        return Some(variable(name, &format!("${{{inside}}}"), scope, gaps));
    }
    match inside {
        "userHome" => shown(scope.world.home),
        "workspaceFolder" => shown(scope.world.here),
        "workspaceFolderBasename" => {
            shown(scope.world.here.and_then(|here| here.file_name()).map(Path::new))
        }
        "pathSeparator" | "/" => Some("/".to_owned()),
        _ if inside.starts_with("input:") || inside.starts_with("command:") => {
            gaps.asked.push(format!("${{{inside}}}"));
            None
        }
        _ => None,
    }
}

fn proxy(inside: &str, scope: &Scope<'_>, gaps: &mut Gaps) -> Option<String> {
    let written = || format!("${{{inside}}}");
    if let Some(name) = inside.strip_prefix("env:") {
        return Some(variable(name, &written(), scope, gaps));
    }
    if inside.starts_with("keyring:") {
        gaps.locked.push(written());
    }
    None
}

fn curly(inside: &str, scope: &Scope<'_>, gaps: &mut Gaps) -> Option<String> {
    let written = || format!("{{{inside}}}");
    if let Some(name) = inside.strip_prefix("env:") {
        return Some(variable(name, &written(), scope, gaps));
    }
    let path = inside.strip_prefix("file:")?;
    let path = match (path.strip_prefix("~/"), scope.world.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => scope.source.parent().unwrap_or(Path::new("")).join(path),
    };
    let text = (scope.world.text_of)(&path);
    if text.is_none() {
        gaps.unset.push(written());
    }
    let text = text.unwrap_or_default();
    gaps.read.push((path, text.clone()));
    Some(text.trim().to_owned())
}

/// `$VAR` and `${VAR}`, the latter also with a default.
fn dollars(text: &str, scope: &Scope<'_>, gaps: &mut Gaps) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after.strip_prefix('{').and_then(|after| after.split_once('}'));
        if let Some((inside, behind)) = braced {
            let (name, default) = inside.split_once(":-").unwrap_or((inside, ""));
            match (scope.world.variable)(name) {
                Some(value) => out.push_str(&value),
                None if default.is_empty() => gaps.unset.push(format!("${{{name}}}")),
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
        out.push_str(&variable(name, &format!("${name}"), scope, gaps));
        rest = behind;
    }
    out.push_str(rest);
    out
}

fn variable(name: &str, written: &str, scope: &Scope<'_>, gaps: &mut Gaps) -> String {
    let value = (scope.world.variable)(name);
    if value.is_none() {
        gaps.unset.push(written.to_owned());
    }
    value.unwrap_or_default()
}
