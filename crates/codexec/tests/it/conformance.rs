//! The conformance suite of MCP looks at us as a client: every scenario that a revision requires,
//! logins among them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{codexec, need, world};

#[test]
fn client_as_of_2025_11_25() {
    check("2025-11-25", 18);
}

#[test]
fn client_as_of_2026_07_28() {
    check("2026-07-28", 32);
}

fn check(revision: &str, required: usize) {
    let Some(world) = world() else { return };
    let modules = world.join("npm/node_modules");
    let suite = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    if !need("the conformance suite", suite.exists()) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let results = dir.path().join("results");
    let output = Command::new(modules.join(".bin/node"))
        .arg(&suite)
        .args(["client", "--requirements", revision, "--timeout", "60000"])
        .arg("--command")
        .arg(format!("{} conformance-client", codexec().display()))
        .arg("-o")
        .arg(&results)
        .env("HOME", dir.path())
        .env("CODEXEC_HOME", dir.path().join("state"))
        .current_dir(dir.path())
        .output()
        .expect("the suite runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let passed = passed_scenarios(&said);
    assert!(
        output.status.success() && passed == required,
        "{passed} of {required} passed\n{}\n{}\n{}",
        failed_checks(&results).join("\n"),
        said,
        String::from_utf8_lossy(&output.stderr),
    );
}

/// The number of scored scenarios without a failure.
pub(crate) fn passed_scenarios(said: &str) -> usize {
    let (scored, unscored) = said.split_once("Not scored").unwrap_or((said, ""));
    let passed = scored.lines().filter_map(|line| line.strip_prefix("✓ "));
    let passed = passed.filter(|line| {
        let name = line.split(':').next().unwrap_or_default();
        !unscored.contains(&format!(" {name} "))
    });
    passed.count()
}

/// What the suite did not like, in its own words.
pub(crate) fn failed_checks(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(failed_checks(&path));
        } else if path.ends_with("checks.json") {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let checks: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
            let is_bad =
                |check: &&Value| check["status"] == "FAILURE" || check["status"] == "WARNING";
            let scenario = dir.display();
            found.extend(
                checks
                    .iter()
                    .filter(is_bad)
                    .map(|check| format!("{scenario}: {} {}", check["id"], check["errorMessage"])),
            );
        }
    }
    found
}
