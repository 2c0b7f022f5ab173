//! What MCPProxy's own configuration file makes of the toolset.

use std::path::Path;

use serde_json::{Value, json};

use super::run;
use crate::support::{Client, command, keep_settings};

/// Puts a configuration into the home that a command runs in.
fn configure(home: &Path, config: &Value, scripts: &[(&str, &str)]) {
    let folder = home.join(".mcpproxy");
    std::fs::create_dir_all(folder.join("scripts")).expect("made");
    std::fs::write(folder.join("mcp_config.json"), config.to_string()).expect("written");
    for (file, code) in scripts {
        std::fs::write(folder.join("scripts").join(file), code).expect("written");
    }
}

fn client(config: &Value, scripts: &[(&str, &str)]) -> Client {
    Client::with(&json!({}), |command| {
        configure(command.get_current_dir().expect("set"), config, scripts);
        command.args(["--toolset", "mcpproxy"]);
    })
}

fn listed(client: &mut Client) -> Vec<String> {
    let list = client.request("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().expect("a list");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

fn disabled() -> Value {
    json!({"ok": false, "error": {
        "code": "FEATURE_DISABLED",
        "message": "code execution is switched off; set \"enable_code_execution\": true in \
                    mcp_config.json and restart",
    }})
}

#[test]
fn it_is_off_unless_its_file_says_otherwise() {
    for config in [json!({}), json!({"enable_code_execution": false})] {
        let mut client = client(&config, &[("one.js", "1")]);
        assert_eq!(listed(&mut client), ["retrieve_tools", "call_tool"], "{config}");
        for arguments in [json!({"code": "1"}), json!({"script": "one"}), json!({"nothing": 1})] {
            let reply = run(&mut client, &arguments);
            assert_eq!((reply.value, reply.is_error), (disabled(), true), "{config}");
        }
    }
    let mut client = client(&json!({"enable_code_execution": true}), &[]);
    assert_eq!(listed(&mut client), ["code_execution", "retrieve_tools", "call_tool"]);
    assert_eq!(run(&mut client, &json!({"code": "1"})).value, json!({"ok": true, "value": 1}));
}

#[test]
fn the_command_line_reads_the_same_file() {
    let home = tempfile::tempdir().expect("a directory");
    let exec = || {
        let mut command = command(home.path());
        let output = command.args(["code", "exec", "--code", "1"]).output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        (serde_json::from_str::<Value>(&text).expect("JSON"), output.status.code())
    };
    assert_eq!(exec(), (json!({"ok": true, "value": 1}), Some(0)));
    configure(home.path(), &json!({}), &[]);
    assert_eq!(exec(), (disabled(), Some(2)));
    configure(home.path(), &json!({"enable_code_execution": true}), &[]);
    assert_eq!(exec(), (json!({"ok": true, "value": 1}), Some(0)));
}

#[test]
fn its_limits_hold_where_a_request_says_nothing() {
    let config = json!({
        "enable_code_execution": true,
        "code_execution_timeout_ms": 400,
        "code_execution_max_tool_calls": 2,
    });
    let mut client = client(&config, &[]);
    let code = |reply: super::Reply| reply.value["error"]["code"].clone();
    assert_eq!(code(run(&mut client, &json!({"code": "while (true) {}"}))), "TIMEOUT");
    let calls = "for (let i = 0; i < 3; i++) call_tool('a', 'b', {}); 'done'";
    let reply = run(&mut client, &json!({"code": calls}));
    assert_eq!(code(reply), "MAX_TOOL_CALLS_EXCEEDED");
    // A request's own word counts, also where it says: none.
    let options = json!({"timeout_ms": 30_000, "max_tool_calls": 0});
    let reply = run(&mut client, &json!({"code": calls, "options": options}));
    assert_eq!(reply.value, json!({"ok": true, "value": "done"}));
}

#[test]
fn scripts_are_files_beside_it() {
    let config = json!({"enable_code_execution": true});
    let scripts = [
        ("double.js", "input.n * 2"),
        ("typed.ts", "const n: number = input.n; return n;"),
        ("both.js", "1"),
        ("both.ts", "2"),
        ("empty.js", ""),
    ];
    let mut client = client(&config, &scripts);
    let run_script = |client: &mut Client, name: &str| {
        run(client, &json!({"script": name, "input": {"n": 21}})).value
    };
    assert_eq!(run_script(&mut client, "double"), json!({"ok": true, "value": 42}));
    assert_eq!(run_script(&mut client, "typed"), json!({"ok": true, "value": 21}));
    // Read anew for each run.
    configure(client.home.path(), &config, &[("double.js", "input.n * 3")]);
    assert_eq!(run_script(&mut client, "double"), json!({"ok": true, "value": 63}));
    for (name, problem) in [
        ("both", "both both.js and both.ts are there, so it is ambiguous; remove one"),
        ("empty", "it is empty"),
    ] {
        let message = format!("script {name:?}: {problem}");
        let error = json!({"code": "SCRIPT_UNUSABLE", "message": message});
        assert_eq!(run_script(&mut client, name), json!({"ok": false, "error": error}));
    }
    let said = run_script(&mut client, "other");
    let message = "script: there is no \"other\"; there are: both, double, empty, typed";
    assert_eq!(said["error"], json!({"code": "SCRIPT_NOT_FOUND", "message": message}));
    let mut list = command(client.home.path());
    let output = list.args(["code", "scripts", "list"]).output().expect("it runs");
    let expected = "NAME    LANGUAGE    WHERE\nboth    javascript  file\nboth    typescript  file\n\
                    double  javascript  file\nempty   javascript  file\ntyped   typescript  file\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let mut exec = command(client.home.path());
    let args = ["code", "exec", "--script", "double", "--input={\"n\": 2}"];
    let output = exec.args(args).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"ok\":true,\"value\":6}\n");
}

/// Limits that it did not have: each has a code, and only its kind of time has its word for it.
#[test]
fn our_own_limits_are_answers_too() {
    let mut client = Client::with(&json!({}), |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        keep_settings(&home, "[limits]\ncpu-s = 1\nmemory-mib = 64\noutput-kib = 8\n");
        command.args(["--toolset", "mcpproxy"]);
    });
    let endless = "while (true) {}";
    let greedy = "const all = []; while (true) all.push('x'.repeat(1e6) + all.length);";
    let chatty = "while (true) log('x'.repeat(1000));";
    for (program, code) in
        [(endless, "TIMEOUT"), (greedy, "MEMORY_LIMIT"), (chatty, "OUTPUT_LIMIT")]
    {
        let options = json!({"timeout_ms": 50_000});
        let reply = run(&mut client, &json!({"code": program, "options": options}));
        assert_eq!(reply.value["error"]["code"], code, "{reply:?}");
        assert!(!reply.is_error, "{reply:?}");
    }
}
