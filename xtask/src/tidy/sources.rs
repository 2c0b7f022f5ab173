//! Checks the size, names and attributes of Rust files.

use super::TextFile;

const FILE_LINES: usize = 700;
const TYPES_LINES: usize = 3_100;
const BAD_NAMES: &[&str] =
    &["utils.rs", "helpers.rs", "common.rs", "misc.rs", "manager.rs", "mod.rs"];

/// The crates that may use unsafe code.
const UNSAFE_ALLOWED: &[&str] = &["crates/codexec-sandbox/", "crates/codexec-js/"];

/// Crates that only one part of our code may name: the module and the folder of the same name. The
/// tests of the binary are free to look into files with other tools.
const CONFINED: &[(&str, &str)] = &[("rusqlite", "crates/codexec-store/src/sqlite")];

pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut types_lines = 0;
    for file in files.iter().filter(|file| file.is_rust()) {
        let path = &file.path;
        let lines = file.text.lines().count();
        if lines > FILE_LINES {
            findings.push(format!("{path}: {lines} lines, split it below {FILE_LINES}"));
        }
        if path.starts_with("crates/codexec-types/src/") && !file.is_test() {
            types_lines += lines;
        }
        if BAD_NAMES.contains(&file.name()) {
            findings.push(format!("{path}: the name is too general, name it after its content"));
        }
        findings.extend(attributes(file));
        findings.extend(confined_names(file));
    }
    if types_lines > TYPES_LINES {
        findings.push(format!(
            "crates/codexec-types: {types_lines} lines, keep it below {TYPES_LINES}"
        ));
    }
    findings
}

fn attributes(file: &TextFile) -> Vec<String> {
    let mut findings = Vec::new();
    let is_unsafe_allowed = UNSAFE_ALLOWED.iter().any(|start| file.path.starts_with(start));
    for attribute in attributes_in(&file.text) {
        if attribute.contains(concat!("al", "low(")) {
            findings.push(format!(
                "{}: has an `allow` attribute, write `expect` with a reason",
                file.path
            ));
        }
        if attribute.contains("unsafe_code") && !is_unsafe_allowed {
            findings.push(format!(
                "{}: allows `unsafe_code`, move the code to codexec-sandbox",
                file.path
            ));
        }
    }
    findings
}

/// Finds names of crates outside the module that they are confined to.
fn confined_names(file: &TextFile) -> Vec<String> {
    let (path, text) = (&file.path, &file.text);
    let mut findings = Vec::new();
    for (name, module) in CONFINED {
        let rest = path.strip_prefix(module);
        let is_inside = rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'));
        if path.starts_with("crates/")
            && path.contains("/src/")
            && !is_inside
            && text.contains(name)
        {
            findings.push(format!("{path}: names `{name}`, move the code below {module}"));
        }
    }
    findings
}

/// Returns the attributes in a file: from `#[` or `#![` at the start of a line to the next `]`.
fn attributes_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines().map(str::trim) {
        let starts = line.starts_with("#[") || line.starts_with("#![");
        if open.is_none() && !starts {
            continue;
        }
        let attribute = open.get_or_insert_default();
        attribute.push_str(line);
        if line.contains(']') {
            found.extend(open.take());
        }
    }
    found
}
