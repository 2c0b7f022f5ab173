//! A variable changes what happens.

use serde_json::{Value, json};

use super::*;

const ENDLESS: &str = "for (;;) {}";

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON: {text}"))
}

#[test]
fn how_long_code_runs() {
    let mut client = client("compact", &[("CODEXEC_DEFAULT_TIMEOUT_MS", "321")], &[]);
    let text = client.run(ENDLESS).failed();
    assert!(text.starts_with("TIMEOUT: stopped after 321 ms"), "{text}");
}

#[test]
fn how_long_code_may_ask_to_run() {
    let variables = [("CODEXEC_MAX_TIMEOUT_MS", "1234"), ("CODEXEC_DEFAULT_TIMEOUT_MS", "300")];
    let mut client = client("compact", &variables, &[]);
    let asked = json!({"code": "return 1", "timeout_ms": 1235});
    let text = client.call("execute_code", &asked).failed();
    assert!(text.contains("1234"), "{text}");
}

/// Ours goes first, also where theirs says less.
#[test]
fn our_own_settings_go_first() {
    let files = [("state/config.toml", "[limits]\ntimeout-ms = 432\n")];
    let mut client = client("compact", &[("CODEXEC_DEFAULT_TIMEOUT_MS", "1")], &files);
    let text = client.run(ENDLESS).failed();
    assert!(text.starts_with("TIMEOUT: stopped after 432 ms"), "{text}");
}

#[test]
fn what_is_left_of_a_long_text() {
    let variables = [
        ("CODEXEC_MAX_OUTPUT_CHARS", "200"),
        ("CODEXEC_TRUNCATION_HEAD", "5"),
        ("CODEXEC_TRUNCATION_TAIL", "3"),
    ];
    let mut client = client("codexec,compact", &variables, &[]);
    let asked = json!({"language": "python", "code": "print('a' * 5 + 'b' * 5000 + 'c' * 2)"});
    let ran = json_of(&client.call("execute_code", &asked).fine());
    assert_eq!(ran["stdout"], "aaaaa\n\n[... truncated 5000 characters ...]\n\ncc\n", "{ran}");
    let ran = json_of(
        &client
            .call("execute_code", &json!({"language": "python", "code": "print('a' * 150)"}))
            .fine(),
    );
    assert_eq!(ran["stdout"], format!("{}\n", "a".repeat(150)), "{ran}");
}

#[test]
fn how_many_sessions_are_open() {
    let mut client = client("codexec", &[("CODEXEC_MAX_SESSIONS", "1")], &[]);
    let start = json!({"language": "bash"});
    client.call("start_session", &start).fine();
    let refused = json_of(&client.call("start_session", &start).failed());
    assert_eq!(refused["error_code"], "TOO_MANY_SESSIONS", "{refused}");
}

#[test]
fn where_scripts_are() {
    let mut client = client("codexec", &[("CODEXEC_SCRIPTS_DIR", "~/of-old")], &[]);
    let script = json!({"name": "hello", "description": "says it", "language": "bash",
                        "code": "echo hello"});
    client.call("save_script", &script).fine();
    assert!(client.home.path().join("of-old/hello").is_dir());
}

#[test]
fn how_much_memory_and_how_many_processes() {
    let variables = [("MCP_BRIDGE_MEMORY", "128m"), ("MCP_BRIDGE_PIDS", "9")];
    let mut client = client("compact", &variables, &[]);
    let python = |code: &str| json!({"language": "python", "code": code});
    let text = client.call("execute_code", &python("b = bytearray(300 << 20)")).failed();
    assert!(text.starts_with("MEMORY_LIMIT: stopped: more than 128 MiB"), "{text}");
    let bomb = "import os, time\nfor _ in range(50):\n    if os.fork() == 0: time.sleep(60)";
    let text = client.call("execute_code", &python(bomb)).failed();
    assert!(text.contains("BlockingIOError") || text.contains("PROCESS"), "{text}");
}

#[test]
fn code_execution_mode_has_its_own_time_and_output() {
    let variables = [("MCP_BRIDGE_TIMEOUT", "1"), ("MCP_BRIDGE_OUTPUT_MODE", "toon")];
    let mut client = client("code-execution-mode", &variables, &[]);
    let reply = client.request(
        "tools/call",
        &json!({"name": "run_python", "arguments": {"code": "while True: pass"}}),
    );
    let structured = &reply["result"]["structuredContent"];
    assert_eq!(
        (&structured["status"], &structured["timeoutSeconds"]),
        (&json!("timeout"), &json!(1))
    );
    let rows = "[{'identifier': n, 'is_even': n % 2 == 0} for n in range(20)]";
    let text = client.call("run_python", &json!({"code": rows, "timeout": 30})).fine();
    assert!(text.contains("```toon"), "{text}");
}

/// What the ceiling of a system is, its requests may ask for.
#[test]
fn a_higher_ceiling_is_one() {
    let variables = [("MCP_BRIDGE_MAX_TIMEOUT", "400")];
    let mut client = client("code-execution-mode", &variables, &[]);
    assert!(
        client
            .call("run_python", &json!({"code": "print(1)", "timeout": 400}))
            .fine()
            .contains('1')
    );
    let text = client.call("run_python", &json!({"code": "print(1)", "timeout": 401})).failed();
    assert!(text.contains("400"), "{text}");
}

#[test]
fn code_executor_writes_its_audit_log_and_opens_its_projects() {
    let variables = [
        ("ENABLE_AUDIT_LOG", "true"),
        ("AUDIT_LOG_PATH", "./audit.jsonl"),
        ("ALLOWED_PROJECTS", "HOME/mine:HOME/other"),
    ];
    let files = [("mine/a.txt", "of a project"), ("private/a.txt", "of nobody")];
    let mut client = client("code-executor", &variables, &files);
    let home = client.home.path().to_owned();
    let read = |folder: &str| {
        let folder = home.join(folder).display().to_string();
        // It is where the code works.
        json!({"code": "print(open('a.txt').read())", "permissions": {"read": [folder]}})
    };
    let text = client.call("executePython", &read("mine")).fine();
    assert!(text.contains("of a project"), "{text}");
    client.call("executePython", &read("private")).failed();
    let mut files = std::fs::read_dir(&home).expect("a folder").map(|file| file.expect("one"));
    let file = files.find(|file| file.file_name().to_string_lossy().starts_with("audit-"));
    let log = std::fs::read_to_string(file.expect("a daily file").path()).expect("a log");
    assert!(!log.is_empty() && log.lines().all(|line| json_of(line).is_object()), "{log}");
}

/// `ENABLE_AUDIT_LOG` means something else to other programs.
#[test]
fn a_bare_variable_counts_with_its_toolset_only() {
    let home = Home::new(&[]);
    let variables = [("POOL_QUEUE_SIZE", "none"), ("LOG_LEVEL", "loud")];
    home.fine(&["servers", "list"], &variables);
    home.fine(&["--toolset", "mcpproxy", "servers", "list"], &variables);
    home.refused(
        &["--toolset", "code-executor", "servers", "list"],
        &variables,
        "`POOL_QUEUE_SIZE = none` is out of range; it must be 1 to 1000",
    );
    home.refused(
        &["--toolset", "codexec", "servers", "list"],
        &variables,
        "LOG_LEVEL is \"loud\"; write debug, info, warn or error",
    );
}

#[test]
fn how_much_is_told() {
    let home = Home::new(&[("servers.json", "{\"mcpServers\": {}}")]);
    let told = |toolset: &str, variables: &[(&str, &str)]| {
        let args =
            ["--toolset", toolset, "--mcp-config", "servers.json", "exec", "-l", "ts", "return 1"];
        let (code, _, told) = home.run(&args, variables);
        assert_eq!(code, 0, "{told}");
        told.contains("DEBUG")
    };
    assert!(told("compact", &[("MCP_BRIDGE_LOG_LEVEL", "DEBUG")]));
    assert!(told("codexec", &[("LOG_LEVEL", "debug")]));
    assert!(!told("compact", &[("LOG_LEVEL", "debug")]));
    assert!(!told("codexec", &[("LOG_LEVEL", "debug"), ("CODEXEC_LOG", "error")]));
}
