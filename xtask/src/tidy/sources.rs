//! Size, names and attributes of the Rust files.

use super::Text;

const FILE_LINES: usize = 700;
const TYPES_LINES: usize = 3_000;
const BAD_NAMES: &[&str] =
    &["utils.rs", "helpers.rs", "common.rs", "misc.rs", "manager.rs", "mod.rs"];

/// The crates that may lift the ban on unsafe code.
const UNSAFE: &[&str] = &["crates/codexec-sandbox/", "crates/codexec-js/"];

pub(crate) fn check(files: &[Text]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut types_lines = 0;
    for file in files.iter().filter(|file| file.is_rust()) {
        let path = &file.path;
        let lines = file.text.lines().count();
        if lines > FILE_LINES {
            findings.push(format!("{path}: it has {lines} lines, cut it below {FILE_LINES}"));
        }
        if path.starts_with("crates/codexec-types/src/") && !file.is_test() {
            types_lines += lines;
        }
        if BAD_NAMES.contains(&file.name()) {
            findings.push(format!("{path}: the name says nothing, name it after what is in it"));
        }
        findings.extend(attributes(file));
    }
    if types_lines > TYPES_LINES {
        findings.push(format!(
            "crates/codexec-types: it has {types_lines} lines, cut it below {TYPES_LINES}"
        ));
    }
    findings
}

fn attributes(file: &Text) -> Vec<String> {
    let mut findings = Vec::new();
    let is_unsafe_allowed = UNSAFE.iter().any(|start| file.path.starts_with(start));
    for attribute in attributes_in(&file.text) {
        if attribute.contains(concat!("al", "low(")) {
            findings.push(format!(
                "{}: it has an `allow` attribute, write `expect` with a reason",
                file.path
            ));
        }
        if attribute.contains("unsafe_code") && !is_unsafe_allowed {
            findings.push(format!(
                "{}: it lifts `unsafe_code`, move the code to codexec-sandbox",
                file.path
            ));
        }
    }
    findings
}

/// What stands between `#[` or `#![` at a line's start and the `]` at the same or another
/// line's end.
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
