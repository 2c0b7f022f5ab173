//! A client that nobody here wrote, which holds results to the schema that they were promised in.

use serde_json::json;

use crate::clients::run_sdk;
use crate::support::{codexec, world};

const SDK: &str = include_str!("sdk.py");

#[test]
fn the_python_sdk_finds_every_result_as_its_schema_says() {
    let Some(world) = world() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let servers = home.path().join("servers.json");
    std::fs::write(&servers, r#"{"mcpServers": {}}"#).expect("written");
    let path = std::env::var("PATH").unwrap_or_default();
    let plan = json!({
        "command": codexec(),
        "args": ["serve", "--toolset", "code-executor", "--mcp-config", servers],
        "env": {"HOME": home.path(), "CODEXEC_HOME": home.path().join("state"), "PATH": path},
    });
    let saw = run_sdk(&world, home.path(), SDK, &plan);
    let expected = json!({
        "tools": ["executeTypescript", "executePython", "health"],
        "typescript": [true, "2"],
        "python": [true, "2"],
        "threw": [false, true],
        "refused": [null, true, "validation"],
        "healthy": true,
    });
    assert_eq!(saw, expected);
}
