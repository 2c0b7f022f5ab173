//! Clients that nobody here wrote, in both eras of the protocol.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Client, codexec, keep_settings, world};

const SDK: &str = include_str!("clients/sdk.py");
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// The official inspector's command line, told which era to speak.
pub(crate) struct Inspector {
    world: std::path::PathBuf,
    home: TempDir,
    era: &'static str,
}

impl Inspector {
    fn find(era: &'static str) -> Option<Inspector> {
        Inspector::with_settings(era, "")
    }

    /// It starts a codexec with these settings.
    pub(crate) fn with_settings(era: &'static str, settings: &str) -> Option<Inspector> {
        Inspector::with(era, settings, &json!({}))
    }

    /// And with these servers.
    pub(crate) fn with(era: &'static str, settings: &str, upstreams: &Value) -> Option<Inspector> {
        let world = world()?;
        let home = tempfile::tempdir().expect("a directory");
        keep_settings(home.path(), settings);
        let servers = home.path().join("servers.json");
        let entries = json!({ "mcpServers": upstreams });
        std::fs::write(&servers, entries.to_string()).expect("written");
        let config = json!({"mcpServers": {"codexec": {
            "type": "stdio",
            "command": codexec(),
            "args": ["serve", "--mcp-config", servers],
            "env": environment(home.path()),
            "cwd": home.path(),
            "protocolEra": era,
        }}});
        std::fs::write(home.path().join("config.json"), config.to_string()).expect("written");
        Some(Inspector { world, home, era })
    }

    /// Its exit code, and what it prints on each stream as JSON.
    pub(crate) fn ask(&self, args: &[&str]) -> (Option<i32>, Value, Value) {
        let bin = self.world.join("npm/node_modules/.bin");
        let output = Command::new(bin.join("node"))
            .arg(bin.join("mcp-inspector"))
            .args(["--cli", "--config", "config.json", "--server", "codexec"])
            .args(["--stored-auth-only", "--format", "json"])
            .args(args)
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("MCP_INSPECTOR_SECRET_STORE", "memory")
            .output()
            .expect("the inspector runs");
        let stdout = String::from_utf8(output.stdout).expect("UTF-8");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        let said = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
        let complaint = stderr.lines().last().map(said).unwrap_or_default();
        (output.status.code(), said(&stdout), complaint)
    }

    pub(crate) fn call(&self, arguments: &Value) -> (Option<i32>, Value) {
        let arguments = arguments.to_string();
        let call = ["--method", "tools/call", "--tool-name", "execute_code", "--tool-args-json"];
        let (code, said, _) = self.ask(&[&call[..], &[&arguments]].concat());
        let result = &said["result"];
        (code, json!([result["content"], result["isError"]]))
    }
}

fn environment(home: &Path) -> Value {
    let path = std::env::var("PATH").unwrap_or_default();
    json!({"HOME": home, "CODEXEC_HOME": home.join("state"), "PATH": path})
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn check_inspector(era: &'static str, version: &str) {
    let Some(inspector) = Inspector::find(era) else { return };
    let era = inspector.era;
    let (code, said, complaint) = inspector.ask(&["--method", "initialize"]);
    let hello = &said["result"];
    assert_eq!((code, &hello["protocolVersion"]), (Some(0), &json!(version)), "{era} {complaint}");
    assert_eq!(hello["serverInfo"]["name"], "codexec");

    let (code, said, _) = inspector.ask(&["--method", "tools/list"]);
    let tools = said["result"]["tools"].as_array().expect("tools").iter();
    let names: Vec<Value> = tools.map(|tool| tool["name"].clone()).collect();
    let expected = json!(["execute_code", "search_tools", "health"]);
    assert_eq!((code, Value::Array(names)), (Some(0), expected));

    let code = "return [6 * 7, typeof tools];";
    assert_eq!(
        inspector.call(&json!({"language": "typescript", "code": code})),
        (Some(0), json!([text("[42,\"object\"]"), false]))
    );
    // Five is the inspector's way to say that the tool said `isError`.
    assert_eq!(
        inspector.call(&json!({"language": "typescript", "code": "throw new Error('no')"})),
        (Some(5), json!([text("RUNTIME_ERROR: no\n  at line 1, column 11"), true]))
    );
    assert_eq!(
        inspector.call(&json!({"language": "typescript", "code": "1", "colour": "red"})),
        (
            Some(5),
            json!([
                text(
                    "INVALID_ARGS: colour: unknown; allowed fields: code, script, version, language, \
                     session, input, args, working_dir, timeout_ms, allowed_tools, allowed_servers, \
                     max_tool_calls"
                ),
                true
            ])
        )
    );
}

#[test]
fn the_inspector_speaks_to_us_with_a_handshake() {
    check_inspector("legacy", LEGACY);
}

#[test]
fn the_inspector_speaks_to_us_without_a_handshake() {
    check_inspector("modern", MODERN);
}

#[test]
fn the_inspector_finds_nothing_wrong_with_our_schemas() {
    let Some(inspector) = Inspector::find("modern") else { return };
    let (code, _, complaint) = inspector.ask(&["--method", "tools/list", "--strict"]);
    assert_eq!((code, complaint), (Some(0), Value::Null));
}

/// What a program with the official Python SDK prints as JSON.
fn run_sdk(world: &Path, home: &Path, program: &str, plan: &Value) -> Value {
    let output = Command::new(world.join("venv/bin/python"))
        .args(["-c", program, &plan.to_string()])
        .current_dir(home)
        .env("HOME", home)
        .output()
        .expect("the client runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{stderr}"))
}

/// The same with a codexec that shows this toolset; `None` where there is no SDK.
pub(crate) fn sdk_saw(toolset: &str, program: &str) -> Option<Value> {
    let world = world()?;
    let home = tempfile::tempdir().expect("a directory");
    let servers = home.path().join("servers.json");
    std::fs::write(&servers, r#"{"mcpServers": {}}"#).expect("written");
    let path = std::env::var("PATH").unwrap_or_default();
    let plan = json!({
        "command": codexec(),
        "args": ["serve", "--toolset", toolset, "--mcp-config", servers],
        "env": {"HOME": home.path(), "CODEXEC_HOME": home.path().join("state"), "PATH": path},
    });
    Some(run_sdk(&world, home.path(), program, &plan))
}

/// The official Python SDK; `mode` is how it is told which era to speak.
fn check_sdk(mode: &str, version: &str) {
    let Some(world) = world() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let servers = home.path().join("servers.json");
    std::fs::write(&servers, r#"{"mcpServers": {}}"#).expect("written");
    let plan = json!({
        "command": codexec(),
        "args": ["serve", "--mcp-config", servers],
        "env": environment(home.path()),
        "mode": mode,
    });
    let saw = run_sdk(&world, home.path(), SDK, &plan);
    assert_eq!(
        saw,
        json!({
            "protocol": version,
            "server": "codexec",
            "instructions": "No servers are configured.",
            "tools": ["execute_code", "search_tools", "health"],
            "templates": [
                "codexec://executions/{id}",
                "codexec://executions/{id}/artifacts",
                "codexec://executions/{id}/artifacts/{+path}",
            ],
            "returned": {"text": ["[2,4]"], "is_error": false},
            "threw": {
                "text": ["RUNTIME_ERROR: no\n  at line 2, column 11"],
                "is_error": true,
            },
            "refused": {
                "text": ["INVALID_ARGS: timeout_ms: 0 is not allowed; it must be a whole number \
                          from 1 to 300000"],
                "is_error": true,
            },
            "cancelled": {"was_cancelled": true, "progress": ["it runs"]},
            "resource": {
                "is_cut": true,
                "contents": 1,
                "uri_is_same": true,
                "is_whole": true,
            },
        })
    );
}

#[test]
fn the_python_sdk_speaks_to_us_with_a_handshake() {
    check_sdk("legacy", LEGACY);
}

#[test]
fn the_python_sdk_speaks_to_us_without_a_handshake() {
    check_sdk("auto", MODERN);
}

/// What a client reads of an execution that it has the id of.
fn resource(client: &mut Client, code: &str) -> Value {
    let call = json!({"name": "execute_code", "arguments": {"code": code}});
    let called = client.request("tools/call", &call);
    let id = called["result"]["_meta"]["codexec/execution"]["id"].as_str().expect("an id");
    let uri = format!("codexec://executions/{id}");
    let read = client.request("resources/read", &json!({"uri": uri}));
    let contents = read["result"]["contents"].as_array().expect("contents");
    assert_eq!((contents.len(), &contents[0]["uri"]), (1, &json!(uri)));
    contents[0]["text"].clone()
}

/// The reply names the resource as the whole of what it cut.
#[test]
fn an_execution_reads_as_its_reply_would_if_it_were_not_cut() {
    let client = &mut Client::start(&json!({}));
    for code in ["({ a: 1 })", "'text'", "console.log('out')", "console.log('out'); [1]"] {
        let reply = client.run(code).fine();
        assert_eq!(resource(client, code), json!(reply), "{code}");
    }
}

#[test]
fn a_resource_that_is_not_there_is_refused() {
    let client = &mut Client::start(&json!({}));
    let nobodys = format!("codexec://executions/exec_{}", "0".repeat(32));
    for uri in [nobodys.as_str(), "codexec://executions/x", "file:///etc/passwd", ""] {
        let reply = client.request("resources/read", &json!({"uri": uri}));
        let sorry = format!(
            "there is no resource {uri:?} here; write codexec://executions/exec_<32 hex>, with \
             /artifacts for the list of its files, with /artifacts/<path> for one"
        );
        let expected = json!({"code": -32_002, "message": sorry});
        assert_eq!(reply["error"], expected);
    }
    client.ping();
}

#[test]
fn an_execution_that_left_nothing_has_an_empty_list() {
    let client = &mut Client::start(&json!({}));
    let call = json!({"name": "execute_code", "arguments": {"code": "1"}});
    let called = client.request("tools/call", &call);
    let id = called["result"]["_meta"]["codexec/execution"]["id"].as_str().expect("an id");
    let uri = format!("codexec://executions/{id}/artifacts");
    let read = client.request("resources/read", &json!({"uri": uri}));
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "application/json", "{read}");
    let list: Value = serde_json::from_str(contents["text"].as_str().expect("text")).expect("JSON");
    let changes = json!({
        "created": [], "modified": [], "deleted": [], "held_back": [], "conflicts": [], "left_out": 0,
    });
    assert_eq!(list, json!({"id": id, "changes": changes, "kept": []}));
    let reply = client.request("resources/read", &json!({"uri": format!("{uri}/a.txt")}));
    assert_eq!(reply["error"]["code"], -32_002, "{reply}");
    let artifacts = client.home.path().join("state/artifacts");
    let mode = std::fs::metadata(artifacts).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
