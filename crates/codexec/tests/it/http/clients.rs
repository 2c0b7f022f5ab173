//! Clients that nobody here wrote, over HTTP and in both eras: the official ones for Python and
//! TypeScript, fastmcp's, and the inspector.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::conformance::stdio_fixture;
use super::server::Server;
use crate::support::world;

const ERAS: [(&str, &str); 2] = [("legacy", "2025-11-25"), ("auto", "2026-07-28")];

#[test]
fn the_official_python_client_works_in_both_eras() {
    check(|world, plan| {
        let mut python = Command::new(world.join("venv/bin/python"));
        python.args(["-c", include_str!("clients/python_sdk.py"), plan]);
        python
    });
}

#[test]
fn the_client_of_fastmcp_works_in_both_eras() {
    check(|world, plan| {
        let mut python = Command::new(world.join("clients/bin/python"));
        python.args(["-c", include_str!("clients/fastmcp_client.py"), plan]);
        python
    });
}

#[test]
fn the_official_typescript_client_works_in_both_eras() {
    check(|world, plan| {
        let modules = world.join("npm/node_modules");
        let mut node = Command::new(modules.join(".bin/node"));
        // Modules are found from the working directory.
        node.args(["--input-type=module", "-e", include_str!("clients/typescript_sdk.mjs"), "--"]);
        node.args(["plan", plan]).current_dir(world.join("npm"));
        node
    });
}

/// Each client does the same, and sees the same.
fn check(client: impl Fn(&Path, &str) -> Command) {
    let Some(world) = world() else { return };
    let server = Server::start("", &json!({"fixture": stdio_fixture(&world)}));
    for (mode, version) in ERAS {
        let plan = json!({
            "url": format!("http://{}/mcp", server.authority),
            "server_url": format!("http://{}/mcp/server/fixture", server.authority),
            "token": server.token,
            "mode": mode,
        });
        let output = client(&world, &plan.to_string()).output().expect("the client runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let saw: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{mode}: {stderr}"));
        let answered = r#"{"username": "ann", "email": "a@b.example"}"#;
        let expected = json!({
            "version": version,
            "tools": ["execute_code", "search_tools", "health"],
            "text": "42",
            "progress": ["half"],
            "session": "42",
            "artifact": "hello\n",
            "is_cancelled": true,
            "elicitation": format!("Elicitation completed: action=accept, content={answered}"),
        });
        assert_eq!(saw, expected, "{mode}: {stderr}");
    }
}

/// The inspector's command line makes a connection for each request, and can neither cancel nor
/// answer questions.
#[test]
fn the_inspector_works_in_both_eras() {
    let Some(world) = world() else { return };
    let server = Server::start("", &json!({}));
    for (era, version) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
        let config = json!({"mcpServers": {"codexec": {
            "type": "streamable-http",
            "url": format!("http://{}/mcp", server.authority),
            "headers": {"Authorization": format!("Bearer {}", server.token)},
            "protocolEra": era,
        }}});
        let file = server.home.path().join("inspector.json");
        std::fs::write(&file, config.to_string()).expect("written");
        let ask = |args: &[&str]| {
            let bin = world.join("npm/node_modules/.bin");
            let output = Command::new(bin.join("node"))
                .arg(bin.join("mcp-inspector"))
                .args(["--cli", "--config"])
                .arg(&file)
                .args(["--server", "codexec", "--stored-auth-only", "--format", "json"])
                .args(args)
                .current_dir(server.home.path())
                .env("HOME", server.home.path())
                .env("MCP_INSPECTOR_SECRET_STORE", "memory")
                .output()
                .expect("the inspector runs");
            let stderr = String::from_utf8_lossy(&output.stderr);
            let said: Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|_| panic!("{era} {args:?}: {stderr}"));
            said["result"].clone()
        };
        let run = |arguments: &Value| {
            let call = ["--method", "tools/call", "--tool-name", "execute_code"];
            ask(&[&call[..], &["--tool-args-json", &arguments.to_string()]].concat())
        };
        assert_eq!(ask(&["--method", "initialize"])["protocolVersion"], version, "{era}");
        let tools = ask(&["--method", "tools/list"]);
        let names: Vec<&Value> =
            tools["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["execute_code", "search_tools", "health"]);
        let session = format!("kept-{era}");
        let set = "globalThis.n = 41; return n";
        run(&json!({"code": set, "language": "typescript", "session": session}));
        let kept =
            run(&json!({"code": "return n + 1", "language": "typescript", "session": session}));
        assert_eq!(kept["content"][0]["text"], "42", "{era}: {kept}");
        let made = run(&json!({"code": "echo hello > out.txt", "language": "bash"}));
        let mut blocks = made["content"].as_array().expect("content").iter();
        let link = blocks.find(|block| block["type"] == "resource_link").expect("a link");
        let uri = link["uri"].as_str().expect("an address");
        let read = ask(&["--method", "resources/read", "--uri", uri]);
        assert_eq!(read["contents"][0]["text"], "hello\n", "{era}: {read}");
    }
}
