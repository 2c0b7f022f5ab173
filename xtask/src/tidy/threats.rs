//! Checks that every threat has a row in docs/threats.md, a marker in the code, and a test.

use std::collections::BTreeSet;

use super::TextFile;

const TABLE: &str = "docs/threats.md";
const TAG: &str = concat!("THREAT", "[");

pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let Some(table) = files.iter().find(|file| file.path == TABLE) else {
        return vec![format!("{TABLE}: missing, write the table of threats")];
    };
    let known: BTreeSet<&str> = table.text.lines().filter_map(row_id).collect();
    let crates = || files.iter().filter(|file| file.path.starts_with("crates/"));
    let mut findings = Vec::new();
    let (mut stopped, mut tested) = (BTreeSet::new(), BTreeSet::new());
    for file in crates() {
        let path = &file.path;
        for id in tags(&file.text) {
            if !known.contains(id) {
                findings.push(format!("{path}: marks the unknown threat {id}, add it to {TABLE}"));
            }
            if !file.is_test() {
                stopped.insert(id.to_owned());
            }
        }
        for name in file.text.lines().filter_map(function).filter(|_| file.is_rust()) {
            let Some(id) = test_id(name) else { continue };
            let is_family = known.iter().any(|known| family(known) == family(&id));
            if known.contains(id.as_str()) {
                tested.insert(id);
            } else if is_family {
                findings.push(format!(
                    "{path}: `{name}` tests the unknown threat {id}, add it to {TABLE}"
                ));
            }
        }
    }
    for id in known {
        if !stopped.contains(id) {
            findings.push(format!("{TABLE}: no code has {TAG}{id}], mark the code that stops it"));
        }
        if !tested.contains(id) {
            let start = id.to_lowercase().replace('-', "_");
            findings.push(format!("{TABLE}: no test of {id}, write one named `{start}_...`"));
        }
    }
    findings
}

/// Returns `ESC-2` for `| ESC-2 | guest code reads ...`.
fn row_id(line: &str) -> Option<&str> {
    let (id, _) = line.strip_prefix("| ")?.split_once(" |")?;
    is_id(id).then_some(id)
}

fn tags(text: &str) -> impl Iterator<Item = &str> {
    text.split(TAG).skip(1).filter_map(|rest| Some(rest.split_once(']')?.0)).filter(|id| is_id(id))
}

fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(family, number)| {
        !family.is_empty()
            && family.bytes().all(|b| b.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}

fn family(id: &str) -> &str {
    id.split('-').next().unwrap_or_default()
}

/// Returns the name in `async fn esc_2_reads_nothing() {`.
fn function(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    line.split(['(', '<']).next()
}

/// Returns `ESC-2` for `esc_2_reads_nothing`.
fn test_id(name: &str) -> Option<String> {
    let (family, rest) = name.split_once('_')?;
    let (number, _) = rest.split_once('_')?;
    let id = format!("{}-{number}", family.to_uppercase());
    is_id(&id).then_some(id)
}
