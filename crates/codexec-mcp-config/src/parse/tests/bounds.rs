//! Invalid and hostile entries.

use super::*;

#[test]
fn an_invalid_entry_hides_no_other() {
    check(
        ConfigOwner::Cursor,
        r#"{"mcpServers": {"../x": {"command": "a"},
"b": 1,
"c": {},
"d": {"url": "h"},
"e": {"type": "sse"},
"f": {"command": "g", "args": "h"},
"g": {"command": "g", "args": [{}]},
"h": {"command": "g", "env": []},
"i": {"command": "g", "env": {"A": []}},
"j": {"command": "g", "env": {"A=B": "1"}},
"k": {"command": "g", "args": ["a\u0000b"]},
"l": {"command": "./x"},
"m": {"command": ["x", 1]},
"n": {"command": 1},
"o": {"url": "https://h", "headers": {"A B": "1"}},
"p": {"url": "https://h", "headers": {"A": "1\r\nB: 2"}},
"q": {"type": 1, "command": "x"},
"ok": {"command": "z"}}}"#,
        &["m@13: x 1", "ok@18: z"],
        &[
            "1: server name \"../x\" is not allowed; use 1 to 64 of the characters A-Z a-z 0-9 _ -",
            "2: server \"b\": its entry is not an object",
            "3: server \"c\": `command` is missing or empty; write the program that starts it",
            "4: server \"d\": `url` is not a URL (relative URL without a base); write it like \
             https://host/mcp",
            "5: server \"e\": `url` is missing; write where the server is",
            "6: server \"f\": `args` must be a list of strings, 1000 at most",
            "7: server \"g\": `args` must be a list of strings, 1000 at most",
            "8: server \"h\": `env` must be an object of strings, 1000 at most",
            "9: server \"i\": `env` must be an object of strings, but \"A\" is not a string",
            "10: server \"j\": `env` has the invalid variable name \"A=B\"",
            "11: server \"k\": `args` has a NUL character; remove it",
            "12: server \"l\": `command` is a relative path, and the server starts in your \
             home directory; write an absolute path, or set the directory with `cwd`",
            "14: server \"n\": `command` is missing or empty; write the program that starts it",
            "15: server \"o\": `headers` has \"A B\", which is not a valid header name or has a line break in its value",
            "16: server \"p\": `headers` has \"A\", which is not a valid header name or has a line break in its value",
            "17: server \"q\": `type` is \"\", which is not supported; write stdio, http or sse",
        ],
    );
}

/// THREAT[CFG-1]: a project may define its own program, but cannot change the meaning of the
/// user's files.
#[test]
fn cfg_1_only_a_projects_file_starts_programs_of_the_project() {
    let text = r#"{"mcpServers": {"a": {"command": "bin/x", "args": ["; rm -rf ~", "$(id)"]}}}"#;
    let line = "a@1: bin/x ; rm -rf ~ $(id) in /work/app PENDING";
    check_parsed(&read(ConfigOwner::Cursor, ConfigScope::Project, text), &[line], &[]);
    assert_eq!(read(ConfigOwner::Cursor, ConfigScope::User, text).servers, []);
}

#[test]
fn names_are_converted_or_rejected() {
    let check = |written: &str, expected: Option<&str>| {
        let name = server_name::to_server_name(written).ok();
        assert_eq!(name.as_ref().map(ServerName::as_str), expected, "{written:?}");
    };
    check("a__b", Some("a__b"));
    check("My Server", Some("My_Server"));
    check("io.github.x/y", Some("io_github_x_y"));
    check("über", Some("_ber"));
    for hostile in ["", "..", "a/../b", "/etc", ".ssh", "~x", "a\\b", "a\0b", "a\nb", "日本"] {
        check(hostile, None);
    }
    check(&"x".repeat(64), Some(&"x".repeat(64)));
    check(&"x".repeat(65), None);
}

#[test]
fn codexec_is_never_its_own_upstream() {
    let is_codexec = |command: &str, args: &[&str]| {
        let entry = serde_json::json!({"mcpServers": {"a": {"command": command, "args": args}}});
        let parsed = read(ConfigOwner::Cursor, ConfigScope::Project, &entry.to_string());
        assert_eq!(parsed.problems, []);
        parsed.servers.is_empty()
    };
    for (command, args) in [
        ("codexec", &[][..]),
        ("/usr/bin/codexec", &["serve"]),
        ("codexec.exe", &[]),
        ("/opt/bin/own", &[]),
        ("npx", &["-y", "codexec@1"]),
        ("npx", &["codexec"]),
        ("pnpm", &["dlx", "codexec"]),
        ("node", &["/x/codexec.js"]),
        ("sh", &["-c", "codexec serve"]),
        ("bash", &["-lc", "exec /opt/bin/own"]),
        ("/usr/bin/env", &["A=1", "codexec"]),
        ("sudo", &["-E", "nice", "-n", "5", "codexec"]),
    ] {
        assert!(is_codexec(command, args), "{command} {args:?}");
    }
    for (command, args) in [
        ("npx", &["-y", "other", "codexec"][..]),
        ("node", &["server.js", "codexec"]),
        ("python3", &["-m", "codexec_like"]),
        ("sh", &["-c", "echo codexec"]),
        ("/codexec/bin/server", &[]),
    ] {
        assert!(!is_codexec(command, args), "{command} {args:?}");
    }
}

/// THREAT[CFG-2]
#[test]
fn cfg_2_ten_thousand_entries_are_a_thousand_servers() {
    let entries: Vec<String> =
        (0..10_000).map(|index| format!("\"s{index}\": {{\"command\": \"x\"}}")).collect();
    let parsed = read(
        ConfigOwner::Cursor,
        ConfigScope::User,
        &format!("{{\"mcpServers\": {{{}}}}}", entries.join(",\n")),
    );
    assert_eq!(parsed.servers.len(), 1_000);
    check_parsed(
        &ParsedConfig { servers: Vec::new(), ..parsed },
        &[],
        &["1001: 9000 more servers are ignored; at most 1000 are read from one file"],
    );
    let entries: Vec<String> = (0..500).map(|index| format!("\"s{index}\": 1")).collect();
    let text = format!("{{\"mcpServers\": {{{}}}}}", entries.join(","));
    let problems = read(ConfigOwner::Cursor, ConfigScope::User, &text).problems;
    assert_eq!(problems.len(), 101);
    assert_eq!(problems[100].what, "the file has 400 more problems");
}

#[test]
fn the_last_of_two_equal_names_counts() {
    check(
        ConfigOwner::Cursor,
        r#"{"mcpServers": {"a": {"command": "x", "command": "y"}, "a": {"command": "z"}}}"#,
        &["a@1: z"],
        &[],
    );
}

#[test]
fn syntax_errors_have_a_position() {
    check(
        ConfigOwner::Cursor,
        "{\n  \"mcpServers\": {\n    \"a\": {\"command\" \"x\"}\n  }\n}",
        &[],
        &["3: it is not JSON: `:` is expected after a key, at column 21"],
    );
    check(
        ConfigOwner::Codex,
        "[mcp_servers.a]\ncommand = x\n",
        &[],
        &["2: it is not TOML: string values must be quoted, expected literal string, at column 11"],
    );
    check(ConfigOwner::Cursor, r#"{"mcpServers": []}"#, &[], &["1: `mcpServers` is not an object"]);
    check(ConfigOwner::Goose, "", &[], &[]);
}
