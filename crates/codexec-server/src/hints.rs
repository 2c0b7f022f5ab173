//! Hints for failures that come from the sandbox: a missing package, no network, a missing file.
//! Each says what to write instead.

use std::path::Path;

use codexec_types::{Admitted, Language, Outcome};

use crate::FinishedExecution;
use crate::denial::RequestWords;
use crate::escaped_text::escape_name;

/// Maximum length of a name in a hint.
const MAX_NAME_CHARS: usize = 60;
/// Only the end of the output is searched: a program fails with its last words.
const SEARCHED_BYTES: usize = 4_000;

const NO_NETWORK_HERE: &str = "no network here";
/// Messages of programs and libraries that found no network.
const NO_NETWORK: &[&str] = &[
    "Name or service not known",
    "Temporary failure in name resolution",
    "Could not resolve host",
    "Could not resolve hostname",
    "Network is unreachable",
    "unable to resolve host address",
    "getaddrinfo EAI_AGAIN",
    "getaddrinfo ENOTFOUND",
    "connect ENETUNREACH",
];
/// Python's message for `json.loads` of a value.
const NOT_TEXT: &str = "the JSON object must be str, bytes or bytearray, not ";
const NO_FILE: &[&str] = &["No such file or directory", "ENOENT: no such file or directory"];

/// All that Node.js says of a failed `fetch`; its cause is a property of the error.
const NODE_FETCH_FAILED: &str = "fetch failed";

/// Packages whose modules have other names.
const PACKAGE_OF_MODULE: &[(&str, &str)] = &[
    ("bs4", "beautifulsoup4"),
    ("Crypto", "pycryptodome"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("fitz", "pymupdf"),
    ("PIL", "pillow"),
    ("pptx", "python-pptx"),
    ("sklearn", "scikit-learn"),
    ("yaml", "pyyaml"),
];

/// Returns what to do about the failure, if the sandbox is its reason.
pub(crate) fn find_hint(
    execution: &FinishedExecution,
    admitted: &Admitted,
    words: RequestWords,
) -> Option<String> {
    let said = match &execution.outcome {
        Outcome::Threw(thrown) => thrown.message.as_str(),
        Outcome::Exited { .. } => tail(execution.output.text()),
        Outcome::Returned(_) if is_its_own_text(execution, admitted) => {
            tail(execution.output.text())
        }
        Outcome::Returned(_) | Outcome::Stopped(_) | Outcome::Crashed(_) | Outcome::Cancelled => {
            return None;
        }
    };
    // The guest's own library may have said it.
    if said.contains(NO_NETWORK_HERE) {
        return None;
    }
    let is_node = execution.language == Language::Node;
    if contains_any(said, NO_NETWORK) || (is_node && said.contains(NODE_FETCH_FAILED)) {
        return Some(no_network(execution.language));
    }
    // Code that has succeeded has dealt with everything else itself.
    if matches!(execution.outcome, Outcome::Returned(_)) {
        return None;
    }
    if let Some(module) = missing_module(said).filter(|_| execution.language == Language::Python) {
        let may_install = admitted.reach().callable().check("codexec", "install_package").is_ok();
        return Some(missing_package(module, may_install));
    }
    if said.contains(NOT_TEXT) {
        return Some("results of tools are parsed already: use the value as it is".to_owned());
    }
    let line = said.lines().rev().find(|line| contains_any(line, NO_FILE))?;
    missing_file(line, execution.working_dir.as_deref(), words)
}

/// True if the output of code can only be its own words: nothing was given to it that it could have
/// printed, such as a log in which somebody else found no network.
fn is_its_own_text(execution: &FinishedExecution, admitted: &Admitted) -> bool {
    execution.usage.tool_calls == 0
        && execution.working_dir.is_none()
        && execution.session.is_none()
        && admitted.input().text() == "null"
}

fn no_network(language: Language) -> String {
    let search = match language {
        Language::Python => "search_tools(\"fetch\")",
        Language::Bash => "`mcp search fetch`",
        Language::TypeScript | Language::JavaScript | Language::Node => "searchTools(\"fetch\")",
    };
    format!("code has {NO_NETWORK_HERE}; call a tool that fetches: {search} finds one")
}

fn missing_package(module: &str, may_install: bool) -> String {
    let top = module.split('.').next().unwrap_or(module);
    let known = PACKAGE_OF_MODULE.iter().find(|(name, _)| *name == top);
    let package = known.map_or(top, |(_, package)| package);
    match may_install {
        true => format!("first write `await packages.install(\"{package}\")`"),
        false => format!("the user installs it with `codexec packages install {package}`"),
    }
}

/// Returns the module's name from Python's message.
fn missing_module(said: &str) -> Option<&str> {
    let (_, after) = said.split_once("No module named '")?;
    let (module, _) = after.split_once('\'')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    (module.len() <= MAX_NAME_CHARS && module.chars().all(is_name)).then_some(module)
}

/// A name without a dot or a slash is usually a program.
fn missing_file(line: &str, dir: Option<&Path>, words: RequestWords) -> Option<String> {
    if !line.contains(['/', '.']) {
        return None;
    }
    match (dir, words.directory) {
        (Some(dir), _) => {
            let dir = escape_name(&dir.to_string_lossy());
            Some(format!("of the user's files, code sees only what is below {dir}"))
        }
        (None, Some(field)) => {
            Some(format!("code sees none of the user's files; give their directory as {field}"))
        }
        (None, None) => {
            let said = "code sees none of the user's files; call a tool of an MCP server that \
                        reads them";
            Some(said.to_owned())
        }
    }
}

fn contains_any(text: &str, needles: &[&str]) -> bool {
    needles.iter().any(|needle| text.contains(needle))
}

fn tail(text: &str) -> &str {
    let mut start = text.len().saturating_sub(SEARCHED_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
