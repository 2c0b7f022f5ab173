//! The official Python SDK's client over HTTP, in both eras.

use std::process::Command;

use serde_json::{Value, json};

use super::server::Server;
use crate::support::world;

const SDK: &str = include_str!("sdk.py");

#[test]
fn the_official_python_client_works_in_both_eras() {
    let Some(world) = world() else { return };
    let server = Server::start("", &json!({}));
    for mode in ["legacy", "auto"] {
        let plan = json!({
            "url": format!("http://{}/mcp", server.authority),
            "token": server.token,
            "mode": mode,
        });
        let output = Command::new(world.join("venv/bin/python"))
            .args(["-c", SDK, &plan.to_string()])
            .output()
            .expect("python runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let saw: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{mode}: {stderr}"));
        let version = if mode == "legacy" { "2025-11-25" } else { "2026-07-28" };
        let expected = json!({
            "version": version,
            "tools": ["execute_code", "search_tools", "health"],
            "text": "42",
            "progress": ["half"],
            "running": 0,
        });
        assert_eq!(saw, expected, "{mode}");
    }
}
