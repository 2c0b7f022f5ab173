//! Checks the README's length, and text that no file may contain.

use super::TextFile;

const README_LINES: usize = 80;

/// Each is written in two pieces, so that this file does not contain it.
const MACHINE: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];
const REGISTRIES: &[&str] =
    &[concat!("crates", ".io"), concat!("npmjs", ".org"), concat!("pypi", ".org")];

pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let mut findings = Vec::new();
    match files.iter().find(|file| file.path == "README.md") {
        None => findings.push("README.md: missing, write one screen".to_owned()),
        Some(readme) => {
            let lines = readme.text.lines().count();
            if lines > README_LINES {
                findings.push(format!(
                    "README.md: {lines} lines, keep it to {README_LINES} and move the rest to docs"
                ));
            }
        }
    }
    for file in files {
        for (number, line) in (1..).zip(file.text.lines()) {
            let path = &file.path;
            // Attack tests contain such paths on purpose.
            if !file.is_test()
                && let Some(machine) = MACHINE.iter().find(|machine| has_path(line, machine))
            {
                findings.push(format!(
                    "{path}:{number}: `{machine}` is a path of one machine, write it relative"
                ));
            }
            if let Some(host) = REGISTRIES.iter().find(|host| line.contains(*host)) {
                findings.push(format!(
                    "{path}:{number}: `{host}` is a registry's host, name the registry in words"
                ));
            }
        }
    }
    findings
}

/// Returns true if a path in the line starts with `start`; a longer path may contain it.
fn has_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-*/~}".contains(c))
    })
}
