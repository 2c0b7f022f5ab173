//! What a user does between two steps of a case, and what somebody does to the files of the server.

use std::path::PathBuf;

use serde_json::Value;

use super::bench::Bench;
use crate::support::command;

/// The user's word at a terminal, for what is known to wait.
pub(super) fn approve(bench: &Bench, step: &Value) {
    let home = bench.client.home.path();
    let output = command(home)
        .args(["servers", "approve", "--yes", "--mcp-config", "servers.json"])
        .arg(step["server"].as_str().expect("a server"))
        .output()
        .expect("codexec runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for text in super::case::texts(&step["shows"]) {
        assert!(said.contains(&text), "it does not show {text:?}: {said}");
    }
}

/// Somebody with the user's rights writes where codexec keeps its own.
pub(super) fn meddle(step: &Value) {
    let place = |key: &str| PathBuf::from(step[key].as_str().expect("a path"));
    let path = place("path");
    match step["op"].as_str().expect("an op") {
        "host_write" => {
            std::fs::write(&path, step["text"].as_str().expect("a text")).expect("written");
        }
        "host_copy" => drop(std::fs::copy(place("from"), &path).expect("copied")),
        "host_link" => {
            let target = path.with_extension("elsewhere");
            std::fs::rename(&path, &target).expect("moved");
            std::os::unix::fs::symlink(&target, &path).expect("linked");
        }
        "host_cut" => {
            let whole = std::fs::read(&path).expect("it is there");
            std::fs::write(&path, &whole[..whole.len() / 2]).expect("written");
        }
        other => panic!("nobody knows how to {other}"),
    }
}
