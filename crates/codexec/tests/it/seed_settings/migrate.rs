//! `codexec migrate`: what was set, as a file of ours that we take.

use super::*;

/// Prints, feeds it back, and gives it.
#[track_caller]
fn migrated(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> String {
    let args: Vec<&str> = ["migrate"].iter().chain(args).copied().collect();
    let text = home.fine(&args, variables);
    home.write("back.toml", &text.replace("HOME", &home.path().display().to_string()));
    // Alone, as if the old system were gone.
    let check = ["--config", "back.toml", "servers", "list", "--no-check"];
    home.fine(&check, &[("CODEXEC_DISCOVER", "0")]);
    text
}

/// Without its comments.
fn settings(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.join("\n").trim().to_owned()
}

#[test]
fn mcpproxy() {
    let home = Home::new(&[(
        ".mcpproxy/mcp_config.json",
        r#"{"listen": ":8080", "api_key": "s3cret", "enable_code_execution": true,
            "code_execution_timeout_ms": 5000, "call_tool_timeout": "2m0s", "colour": {"a": 1},
            "mcpServers": [
              {"name": "a", "command": "x", "args": ["-y"], "env": {"T": "${env:TOKEN}", "D": "file:/d"},
               "working_dir": "/srv", "quarantined": true},
              {"name": "b", "url": "https://h/mcp", "headers": {"A": "Bearer ${env:TOKEN}"}, "enabled": false},
              {"name": "c", "command": "x", "env": {"T": "${keyring:t}"}}]}"#,
    )]);
    let text = migrated(&home, &["--from", "mcpproxy"], &[("TOKEN", "t0p")]);
    let expected = r#"toolset = ["mcpproxy"]

[gateway]
timeout-ms = 120000

[limits]
max-timeout-ms = 600000

[mcpproxy]
enabled = true
scripts = "HOME/.mcpproxy/scripts"
timeout-ms = 5000

[servers.a]
args = ["-y"]
command = "x"
cwd = "/srv"
trust = "manual"

[servers.a.env]
T = "${TOKEN}"

[servers.b]
enabled = false
url = "https://h/mcp"

[servers.b.headers]
A = "Bearer ${TOKEN}""#;
    assert_eq!(settings(&text), expected);
    let file = "# HOME/.mcpproxy/mcp_config.json";
    for comment in [
        "#   \"codexec\": {\"command\": \"codexec\", \"args\": [\"serve\", \"--toolset\", \"mcpproxy\"]}"
            .to_owned(),
        format!("{file}: `listen` has no effect in codexec: the client starts codexec"),
        format!("{file}: `api_key` has no effect in codexec"),
        format!("{file}: unknown key `colour`"),
        "# server a: D is left out: in config.toml, env:, file: and keyring: refer".to_owned(),
        "# server b is written as disabled: it is disabled in that file".to_owned(),
        format!("{file}:7: server \"c\": ${{keyring:t}} is in MCPProxy's own keyring"),
    ] {
        assert!(text.contains(&comment), "{comment}\nis not in\n{text}");
    }
    // Neither a key of theirs that is not used nor the value of a variable.
    assert!(!text.contains("s3cret") && !text.contains("t0p"), "{text}");
}

#[test]
fn code_executor() {
    let home = Home::new(&[
        (
            ".code-executor.json",
            r#"{"version": 1, "security": {"maxTimeoutMs": 60000, "allowedTools": ["mcp__time__*"],
                "allowNetwork": ["h"]}, "executors": {"python": {"enabled": true}}}"#,
        ),
        ("named.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#),
    ]);
    let variables = [
        ("ALLOWED_PROJECTS", "/srv/a:/srv/b"),
        ("ENABLE_AUDIT_LOG", "true"),
        ("AUDIT_LOG_PATH", "/srv/audit.log"),
        ("POOL_QUEUE_SIZE", "0"),
        ("PYTHON_SANDBOX_READY", "true"),
        ("MCP_CONFIG_PATH", "named.json"),
        ("ANTHROPIC_API_KEY", "sk-s3cret"),
    ];
    let text = migrated(&home, &["--from", "code-executor"], &variables);
    let expected = r#"toolset = ["code-executor"]

[code-executor]
allowed-tools = ["mcp__time__*"]
audit = true
audit-log = "/srv/audit.log"
projects = ["/srv/a", "/srv/b"]

[limits]
max-timeout-ms = 60000

[servers.a]
command = "x""#;
    assert_eq!(settings(&text), expected);
    for comment in [
        "# ignored: `POOL_QUEUE_SIZE = 0` is out of range; it must be 1 to 1000",
        "# PYTHON_SANDBOX_READY has no effect in codexec: Python always runs in the sandbox",
        "# ANTHROPIC_API_KEY has no effect in codexec",
        "# HOME/.code-executor.json: `security.allowNetwork` has no effect in codexec",
    ] {
        assert!(text.contains(comment), "{comment}\nis not in\n{text}");
    }
    assert!(!text.contains("s3cret"), "{text}");
}

#[test]
fn code_execution_mode() {
    let home = Home::new(&[
        ("MCPs/a.json", r#"{"mcpServers": {"a": {"command": "x", "description": "d"}}}"#),
        ("more.toml", "[mcpServers.b]\ncommand = 'y'\n"),
    ]);
    let variables = [
        ("MCP_BRIDGE_TIMEOUT", "10"),
        ("MCP_BRIDGE_MAX_TIMEOUT", "400"),
        ("MCP_BRIDGE_OUTPUT_MODE", "toon"),
        ("MCP_BRIDGE_IMAGE", "python:3.14-slim"),
        ("MCP_SERVERS_CONFIG", "more.toml"),
    ];
    let text = migrated(&home, &["--from", "code-execution-mode"], &variables);
    let expected = r#"toolset = ["code-execution-mode"]

[code-execution-mode]
max-timeout-ms = 400000
output = "toon"
timeout-ms = 10000

[limits]
max-timeout-ms = 400000

[servers.a]
command = "x"

[servers.b]
command = "y""#;
    assert_eq!(settings(&text), expected);
    assert!(
        text.contains("# MCP_BRIDGE_IMAGE has no effect in codexec: no image is needed"),
        "{text}"
    );
    let alone = migrated(&home, &["--from", "code-execution-mode", "--path", "more.toml"], &[]);
    assert_eq!(
        settings(&alone),
        "toolset = [\"code-execution-mode\"]\n\n[servers.b]\ncommand = \"y\""
    );
}

#[test]
fn codexec() {
    let home = Home::new(&[(
        ".env",
        "CODEXEC_SANDBOX_MODE=subprocess   # or docker\nexport CODEXEC_MAX_SESSIONS=\"3\"\n\
         CODEXEC_SCRIPTS_DIR=~/.annabelle/scripts\n# CODEXEC_MAX_TIMEOUT_MS=1\nOTHER=1\n",
    )]);
    let text = migrated(&home, &["--from", "codexec", "--path", ".env"], &[]);
    let expected = "toolset = [\"codexec\"]\n\n[limits]\ngrace-s = 5\n\n[scripts]\nfolder = \"~/.annabelle/scripts\"\n\n\
                    [sessions]\nmax = 3";
    assert_eq!(settings(&text), expected);
    assert!(text.contains("`CODEXEC_SANDBOX_MODE` has no effect in codexec"), "{text}");
    let variables = [("CODEXEC_LOG_RETENTION_DAYS_SUCCESS", "7")];
    let text = migrated(&home, &["--from", "codexec"], &variables);
    let expected = "toolset = [\"codexec\"]\n\n[limits]\ngrace-s = 5\n\n[logs]\nsuccess-days = 7";
    assert_eq!(settings(&text), expected);
    let text = migrated(&home, &["--from", "codexec"], &[("CODEXEC_SANDBOX_MODE", "docker")]);
    assert!(text.contains("ignored: `CODEXEC_SANDBOX_MODE = docker` is not supported"), "{text}");
}

/// Nothing in a file becomes more than a value, and nothing is written.
#[test]
fn a_hostile_file_stays_in_its_place() {
    let text = json!({
        "enable_code_execution": true,
        "a\n[servers.evil]\ncommand = \"evil\"\n#": 1,
        "\u{1b}[31m\r": 1,
        "mcpServers": [
            {"name": "a", "command": "x\"\n[servers.evil]\ncommand = \"y", "args": ["'''", "\"\"\""]},
            {"name": "b\n[servers.evil]", "command": "x"},
            {"name": "c", "command": "x", "env": {"A\nB": "${env:NO}"}},
        ],
    });
    let home = Home::new(&[(".mcpproxy/mcp_config.json", &text.to_string())]);
    let before = std::fs::read_dir(home.path()).expect("a folder").count();
    let text = home.fine(&["migrate", "--from", "mcpproxy"], &[]);
    assert_eq!(std::fs::read_dir(home.path()).expect("a folder").count(), before);
    let table: toml::Table = toml::from_str(&text).expect("TOML");
    let names: Vec<&String> = table["servers"].as_table().expect("servers").keys().collect();
    assert_eq!(names, ["a", "c"]);
    assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{text:?}");
    migrated(&home, &["--from", "mcpproxy"], &[]);
}

#[test]
fn what_cannot_be_migrated_is_told() {
    let home = Home::new(&[("broken.json", "{"), ("many.json", "{}")]);
    home.refused(
        &["migrate", "--from", "mcpproxy", "--path", "gone.json"],
        &[],
        "HOME/gone.json: there is no such file",
    );
    home.refused(
        &["migrate", "--from", "mcpproxy", "--path", "broken.json"],
        &[],
        "HOME/broken.json: it is not JSON: it ends inside an object, at line 1, column 2",
    );
    let (code, _, told) = home.run(&["migrate", "--from", "other"], &[]);
    assert!(code == 2 && told.contains("code-execution-mode, mcpproxy"), "{told}");
    let (code, _, told) = home.run(&["migrate"], &[]);
    assert!(code == 2 && told.contains("--from <SYSTEM>"), "{told}");
    let many: serde_json::Map<String, Value> =
        (0..5_000).map(|index| (format!("k{index}"), json!(1))).collect();
    home.write("many.json", &Value::Object(many).to_string());
    let text = migrated(&home, &["--from", "mcpproxy", "--path", "many.json"], &[]);
    assert!(text.contains("4900 more unknown keys"), "{}", text.len());
}
