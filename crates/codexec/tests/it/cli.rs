//! The command line: what is printed where, and with which exit code.

mod exec;
mod help;
mod outcome;
mod records;
mod terminal;
mod working_dir;

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::startup::upstream;
use crate::support::command;
use crate::world::World;

/// 0: done. 1: the guest failed. 2: we failed.
#[derive(Debug, PartialEq)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// A home of its own, and files in it.
struct CliHome {
    home: TempDir,
}

impl CliHome {
    fn new(files: &[(&str, &str)]) -> CliHome {
        let home = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            std::fs::write(home.path().join(name), text).expect("written");
        }
        CliHome { home }
    }

    fn with_servers(servers: &Value) -> CliHome {
        CliHome::new(&[("servers.json", &json!({"mcpServers": servers}).to_string())])
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, "")
    }

    /// With this on standard input.
    fn run_with(&self, args: &[&str], input: &str) -> Ran {
        let mut command = command(self.path());
        command.args(args).env_remove("COLUMNS").env_remove("CODEXEC_LOG");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("codexec starts");
        let mut stdin = child.stdin.take().expect("piped");
        // One that reads nothing has closed it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).expect("UTF-8");
            text.replace(&self.path().display().to_string(), "HOME")
        };
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

fn fine(stdout: &str) -> Ran {
    Ran { code: Some(0), stdout: format!("{stdout}\n"), stderr: String::new() }
}

/// The guest's fault.
fn failed(stderr: &str) -> Ran {
    Ran { code: Some(1), stdout: String::new(), stderr: format!("{stderr}\n") }
}

/// Ours, or the user's.
fn refused(stderr: &str) -> Ran {
    Ran { code: Some(2), stdout: String::new(), stderr: format!("error: {stderr}\n") }
}

#[track_caller]
fn check(args: &[&str], expected: &Ran) {
    assert_eq!(&CliHome::new(&[]).run(args), expected, "{args:?}");
}

#[test]
fn code_comes_as_an_argument_a_file_or_standard_input() {
    let desk = CliHome::new(&[
        ("typed.ts", "const x: number = 42; x"),
        ("plain.js", "const x = 42; x"),
        ("other.txt", "const x: number = 42; x"),
    ]);
    assert_eq!(desk.run(&["exec", "-l", "ts", "return 6*7"]), fine("42"));
    for file in ["typed.ts", "plain.js"] {
        assert_eq!(desk.run(&["exec", "--file", file]), fine("42"), "{file}");
    }
    assert_eq!(desk.run(&["exec", "--file", "other.txt"]).code, Some(2));
    assert_eq!(desk.run(&["exec", "-l", "ts", "--file", "other.txt"]), fine("42"));
    let code = "const x: number = 42; x";
    assert_eq!(desk.run_with(&["exec", "-l", "ts"], code), fine("42"));
    assert_eq!(desk.run_with(&["exec", "-l", "ts", "-"], code), fine("42"));
}

#[test]
fn the_language_is_as_the_file_ends_unless_it_is_said() {
    let desk = CliHome::new(&[("typed.js", "const x: number = 42; x")]);
    let no_types = failed(
        "SYNTAX_ERROR: Missing initializer in const declaration; Add an initializer (e.g. ` = \
         undefined`) here; the code is valid TypeScript: set language to typescript\n  at line \
         1, column 7\n  const x: number = 42; x\n        ^",
    );
    assert_eq!(desk.run(&["exec", "--file", "typed.js"]), no_types);
    for language in ["ts", "typescript"] {
        assert_eq!(desk.run(&["exec", "-f", "typed.js", "-l", language]), fine("42"));
        assert_eq!(
            desk.run(&["exec", "--language", language, "const x: number = 42; x"]),
            fine("42")
        );
    }
    for language in ["js", "javascript"] {
        assert_eq!(desk.run(&["exec", "-l", language, "const x = 42; x"]), fine("42"));
        assert_eq!(desk.run(&["exec", "-l", language, "const x: number = 42; x"]), no_types);
    }
}

#[test]
fn values_go_to_standard_output_and_failures_to_standard_error() {
    check(&["exec", "-l", "ts", "'a\\nb'"], &fine("a\nb"));
    check(&["exec", "-l", "ts", "undefined"], &fine("null"));
    check(&["exec", "-l", "ts", "console.log(1); ({ a: [1] })"], &fine("1\n[result]\n{\"a\":[1]}"));
    let boom =
        CliHome::new(&[]).run(&["exec", "-l", "ts", "console.log(1);\nthrow new Error('boom')"]);
    assert_eq!((boom.code, boom.stdout.as_str()), (Some(1), "1\n"), "{boom:?}");
    assert_eq!(boom.stderr.trim_end(), "RUNTIME_ERROR: boom\n  at line 2, column 11", "{boom:?}");
    check(
        &["exec", "-l", "ts", "let x = ;"],
        &failed(
            "TRANSPILE_ERROR: Unexpected token\n  at line 1, column 9\n  let x = ;\n          ^",
        ),
    );
    check(&["exec", "-l", "ts", "--input", r#"{"a": [1, 2]}"#, "input.a[1]"], &fine("2"));
}

#[test]
fn a_timeout_ends_the_code() {
    for timeout in ["100ms", "1s"] {
        let ran =
            CliHome::new(&[]).run(&["exec", "-l", "ts", "--timeout", timeout, "while (true) {}"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
        assert_eq!(ran.stderr.split(':').next(), Some("TIMEOUT"));
    }
    check(&["exec", "-l", "ts", "-t", "2m", "1"], &fine("1"));
    check(&["exec", "-l", "ts", "-t", "30", "1"], &fine("1"));
}

#[test]
fn mistakes_are_explained() {
    let help = "\n\nFor more information, try '--help'.";
    for timeout in ["5x", "x", "-", "1.5s"] {
        let sorry = "write it like 500ms, 10s or 2m";
        let expected =
            format!("invalid value '{timeout}' for '--timeout <TIMEOUT>': {sorry}{help}");
        check(&["exec", "-l", "ts", "--timeout", timeout, "1"], &refused(&expected));
    }
    check(
        &["exec", "-l", "cobol", "1"],
        &refused(
            "unknown --language \"cobol\"; use typescript, javascript, python, bash, node, or \
             ts, js, py, sh, mjs",
        ),
    );
    check(
        &["exec", "--file", "nowhere.ts"],
        &refused("--file: nowhere.ts: No such file or directory"),
    );
    check(
        &["exec", "-l", "ts", "--input", "{", "1"],
        &refused("--input is not JSON: EOF while parsing an object at line 1 column 1"),
    );
    // A file says its language by its name; a text says nothing.
    for text in [&["exec", "1"][..], &["exec", "print(1)"]] {
        let expected = "the language is missing: name it with --language (-l): \
                        typescript, javascript, python, bash, node";
        check(text, &refused(expected));
    }
    for code in [&["exec", "-l", "ts", ""][..], &["exec", "-l", "ts"]] {
        check(code, &refused("code: it is empty; send at least one statement"));
    }
    check(
        &["exec", "--file", "a.ts", "1"],
        &refused(&format!(
            "the argument '--file <FILE>' cannot be used with '[CODE]'\n\n\
             Usage: codexec exec --file <FILE> [CODE] [-- <ARGS>...]{help}"
        )),
    );
    check(
        &["serv"],
        &refused(&format!(
            "unrecognized subcommand 'serv'\n\n  tip: some similar subcommands exist: 'servers', 'serve'\n\n\
             Usage: codexec [OPTIONS] [COMMAND]{help}"
        )),
    );
}

/// An option is called what the user wrote, not what an agent would have written.
#[test]
fn values_out_of_range_name_the_option() {
    for (timeout, ms) in [("0", "0"), ("301s", "301000"), ("6m", "360000")] {
        let expected = format!("--timeout: {ms} ms is out of range; it must be 1 to 300000");
        check(&["exec", "-l", "ts", "--timeout", timeout, "1"], &refused(&expected));
    }
    check(
        &["exec", "-l", "ts", "--max-tool-calls", "1001", "1"],
        &refused("--max-tool-calls: 1001 is out of range; it must be 0 to 1000"),
    );
}

#[test]
fn a_bad_pattern_is_explained_once() {
    check(
        &["exec", "-l", "ts", "--allowed-tools", "nodot", "1"],
        &refused(
            "--allowed-tools: \"nodot\" is not a tool pattern; write it like \"github.get_issue\", \
             \"github.*\", \"mcp__github__*\" or \"*\"",
        ),
    );
}

#[test]
fn broken_settings_name_the_file_and_how_to_write_them() {
    let check = |text: &str, expected: &str| {
        let expected = refused(expected);
        // Where it is looked for by itself, and where somebody says that it is.
        let desk = CliHome::new(&[("named.toml", text)]);
        assert_eq!(desk.run(&["exec", "-l", "ts", "--config", "named.toml", "1"]), expected);
        std::fs::create_dir(desk.path().join("state")).expect("made");
        std::fs::write(desk.path().join("state/config.toml"), text).expect("written");
        let ran = desk.run(&["doctor"]);
        let stderr = ran.stderr.replace("HOME/state/config.toml", "named.toml");
        assert_eq!(Ran { stderr, ..ran }, expected);
    };
    check(
        "[sandbox]\nlowered = ['walls']",
        "named.toml: `sandbox.lowered` names \"walls\"; the layers are user, pid, mount, network, \
         ipc, uts, cgroup-namespace, root, landlock, capabilities, no-new-privileges, rlimits, \
         seccomp, cgroup",
    );
    check(
        "[limits]\ntimeout-ms = 0",
        "named.toml: `limits.timeout-ms = 0` is out of range; it must be 1 to 300000",
    );
    check(
        "[tools]\nallowed = ['github']",
        "named.toml: `tools.allowed`: \"github\" is not a tool pattern; write it like \
         \"github.get_issue\", \"github.*\", \"mcp__github__*\" or \"*\"",
    );
    check(
        "[limits]\ndisk-files = 1",
        "named.toml: `limits.disk-files = 1` is out of range; it must be 64 to 1000000",
    );
    check(
        "[environment]\nLD_PRELOAD = 'x'",
        "named.toml: `environment.LD_PRELOAD` cannot be given to code: it changes what every \
         program loads",
    );
    check(
        "colour = 1",
        "named.toml: TOML parse error at line 1, column 1\n  |\n1 | colour = 1\n  | ^^^^^^\n\
         unknown field `colour`, expected one of `toolset`, `limits`, `languages`, `python`, `node`, \
         `files`, `environment`, `sandbox`, `workers`, `sessions`, `scripts`, `packages`, `tools`, `code`, `gateway`, `discovery`, `logs`, `replies`, `http`, `otlp`, `code-executor`, `code-execution-mode`, `mcpproxy`, `servers`\n",
    );
    assert_eq!(
        CliHome::new(&[]).run(&["exec", "-l", "ts", "--config", "nowhere.toml", "1"]),
        refused("nowhere.toml: No such file or directory")
    );
}

#[test]
fn broken_server_files_that_somebody_named_are_refused() {
    let check = |text: &str, expected: &str| {
        let desk = CliHome::new(&[("servers.json", text)]);
        let ran = desk.run(&["exec", "-l", "ts", "--mcp-config", "servers.json", "1"]);
        assert_eq!(ran, refused(&format!("servers.json:1: {expected}")));
    };
    check("{", "it is not JSON: it ends inside an object, at column 2");
    check(r#"{"mcpServers": 7}"#, "`mcpServers` is not an object");
    assert_eq!(
        CliHome::new(&[]).run(&["exec", "-l", "ts", "--mcp-config", "nowhere.json", "1"]),
        refused("nowhere.json:1: it cannot be read: No such file or directory")
    );
}

/// Who names a file with another key, as VS Code has it, would look for the servers for long.
#[test]
fn a_named_server_file_without_servers_is_refused() {
    for text in ["[]", "{}", r#"{"servers": {}}"#] {
        let desk = CliHome::new(&[("servers.json", text)]);
        let ran = desk.run(&["exec", "-l", "ts", "--mcp-config", "servers.json", "1"]);
        assert_eq!(ran, refused("servers.json:1: it has no `mcpServers`"), "{text}");
    }
}

#[test]
fn files_that_were_found_are_left_out_when_they_are_broken() {
    let desk = CliHome::new(&[(".mcp.json", "{"), (".claude.json", "[1")]);
    let ran = desk.run(&["exec", "-l", "ts", "42"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "42\n"));
    let named: Vec<&str> =
        ran.stderr.lines().filter_map(|line| line.split("problem=").nth(1)).collect();
    assert_eq!(
        named,
        [
            "HOME/.claude.json:1: it is not JSON: `,` or `]` is expected, at column 3",
            "HOME/.mcp.json:1: it is not JSON: it ends inside an object, at column 2",
        ]
    );
}

#[test]
fn allowed_tools_and_max_tool_calls_hold() {
    let servers = json!({"a": upstream(&["a"]), "b": upstream(&["b"])});
    let desk = CliHome::with_servers(&servers);
    let run = |args: &[&str], code: &str| {
        desk.run(&[&["exec", "-l", "ts", "--mcp-config", "servers.json"], args, &[code]].concat())
    };
    let list = "Object.keys(tools)";
    assert_eq!(run(&[], list), fine(r#"["a","b"]"#));
    assert_eq!(run(&["--allowed-tools", "a.*"], list), fine(r#"["a"]"#));
    assert_eq!(run(&["--allowed-tools", "a.*,b.who"], list), fine(r#"["a","b"]"#));
    assert_eq!(run(&["--allowed-tools", "mcp__b__*"], list), fine(r#"["b"]"#));
    assert_eq!(run(&["--allowed-tools", ""], list), fine("[]"));
    let first = |ran: Ran| (ran.code, ran.stderr.lines().next().unwrap_or_default().to_owned());
    let denied =
        "SERVER_NOT_ALLOWED: server \"b\" may not be called; add \"b.who\" to --allowed-tools";
    let ran = run(&["--allowed-tools", "a.*"], "await tools.b.who()");
    assert_eq!(first(ran), (Some(1), denied.to_owned()));
    let twice = "await tools.a.who(); (await tools.a.who()).name";
    assert_eq!(run(&["--max-tool-calls", "2"], twice), fine("a"));
    assert_eq!(
        run(&["--max-tool-calls", "1"], twice),
        failed("MAX_TOOL_CALLS_EXCEEDED: stopped: more than 1 tool calls in one execution")
    );
}

#[test]
fn settings_narrow_what_code_may_call() {
    let desk = CliHome::with_servers(&json!({"a": upstream(&["a"]), "b": upstream(&["b"])}));
    std::fs::write(desk.path().join("narrow.toml"), "[tools]\nallowed = ['b.*']").expect("written");
    let run = |args: &[&str]| {
        let common =
            ["--config", "narrow.toml", "--mcp-config", "servers.json", "exec", "-l", "ts"];
        desk.run(&[&common[..], args, &["Object.keys(tools)"]].concat())
    };
    assert_eq!(run(&[]), fine(r#"["b"]"#));
    assert_eq!(run(&["--allowed-tools", "a.*"]), fine("[]"));
    assert_eq!(run(&["--allowed-tools", "*"]), fine(r#"["b"]"#));
}

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().expect("a list").iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn tools_of_real_servers_are_listed_searched_and_shown() {
    let Some(world) = World::find() else { return };
    let desk = CliHome::with_servers(&world.servers);
    let json_of = |args: &[&str]| -> Value {
        let ran =
            desk.run(&[&["--mcp-config", "servers.json", "tools"], args, &["--json"]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
        serde_json::from_str(&ran.stdout).expect("JSON")
    };
    let all = json_of(&["list"]);
    let of = |server: &str| names(&all).iter().filter(|name| name.starts_with(server)).count();
    assert_eq!([of("everything."), of("filesystem."), of("time.")], [15, 14, 2]);

    let found = json_of(&["search", "convert", "a", "time", "--server", "time", "-n", "1"]);
    assert_eq!(
        found,
        json!([{
            "name": "time.convert_time",
            "server": "time",
            "tool": "convert_time",
            "description": "Convert time between timezones",
            "signature": "convert_time(args: { source_timezone: string; time: string; \
                target_timezone: string }): Promise<{ source: { timezone: string; datetime: \
                string; day_of_week: string; is_dst: boolean }; target: { timezone: string; \
                datetime: string; day_of_week: string; is_dst: boolean }; time_difference: string }>",
        }])
    );
    let found = json_of(&["search", "--detail", "names", "-n", "1", "convert a time"]);
    assert_eq!(
        found,
        json!([{"name": "time.convert_time", "server": "time", "tool": "convert_time"}])
    );

    for name in ["everything.get-sum", "mcp__everything__get-sum", "get-sum"] {
        let shown = json_of(&["schema", name]);
        assert_eq!(
            [&shown["name"], &shown["inputSchema"]["required"]],
            [&json!("everything.get-sum"), &json!(["a", "b"])],
            "{name}"
        );
    }
}

/// The text of one small server's tools.
fn tools(args: &[&str]) -> Ran {
    let desk = CliHome::with_servers(&json!({"a": upstream(&["a"])}));
    desk.run(&[&["--mcp-config", "servers.json", "tools"], args].concat())
}

#[test]
fn tools_as_text_are_named_as_they_are_called() {
    let line = "a.who(): Promise<unknown> // Tells who a is.";
    assert_eq!(tools(&["list"]), fine("TOOL   WHAT IT DOES\na.who  Tells who a is."));
    assert_eq!(tools(&["list", "-v"]), fine(line));
    assert_eq!(tools(&["search", "who"]), fine(line));
    assert_eq!(tools(&["search", "--detail", "names", "who"]), fine("a.who"));
    assert_eq!(
        tools(&["schema", "a.who"]),
        fine(&format!("{line}\n  input {{\"type\":\"object\"}}"))
    );
}

#[test]
fn a_tool_is_declared_in_the_language_that_is_asked_for() {
    let declared = |form: &str| tools(&["schema", "a.who", "--as", form]);
    let typescript = "declare const tools: { a: {\n  /** Tells who a is. */\n  \
                      who(): Promise<unknown>;\n} };";
    assert_eq!(declared("typescript"), fine(typescript));
    let python = "# await tools.a.who(..)\nasync def who() -> Any:\n    \
                  \"\"\"Tells who a is.\"\"\"";
    assert_eq!(declared("python"), fine(python));
    assert_eq!(declared("json"), tools(&["schema", "a.who", "--json"]));
}

#[test]
fn a_tool_that_is_not_there_fails_with_the_nearest() {
    assert_eq!(
        tools(&["schema", "a.wo"]),
        failed("no tool \"wo\" on server \"a\"; did you mean who?")
    );
}

#[test]
fn a_search_without_a_match_says_so() {
    assert_eq!(tools(&["search", "zzzqqq"]), failed("no tool matches; try other words"));
    assert_eq!(
        tools(&["search", "--server", "b", "who"]),
        failed("no server \"b\"; the servers are a")
    );
}

#[test]
fn a_list_says_which_server_failed() {
    let servers = json!({"a": upstream(&["a"]), "gone": {"command": "/nowhere/mcp-server"}});
    let desk = CliHome::with_servers(&servers);
    let ran = desk.run(&["--mcp-config", "servers.json", "tools", "list", "--json"]);
    let listed: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((ran.code, names(&listed)), (Some(0), vec!["a.who"]));
    assert_eq!(
        ran.stderr,
        "server gone: it did not start: \"/nowhere/mcp-server\" was not found; install it, or write its \
         whole path\n"
    );
}

/// Nobody's turn is lost by waiting here: a list that is not whole is worth nothing.
#[test]
fn a_list_waits_for_a_slow_server() {
    let desk =
        CliHome::with_servers(&json!({"a": upstream(&["a"]), "slow": upstream(&["slow", "7"])}));
    let ran = desk.run(&["--mcp-config", "servers.json", "tools", "list", "--json"]);
    let listed: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((names(&listed), ran.stderr.as_str()), (vec!["a.who", "slow.who"], ""));
}

#[test]
fn doctor_tells_layers_languages_and_servers() {
    let entries = json!({
        "a": upstream(&["a"]),
        "off": {"command": "x", "disabled": true},
        "b b": {"command": "/nowhere/x"},
        "odd": {"command": "x", "args": 5},
    });
    let ran = CliHome::with_servers(&entries).run(&["doctor", "--mcp-config", "servers.json"]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    // Whether there is a cgroup to be had depends on the machine.
    let is_constant = |line: &&str| !line.starts_with("  MISSING ") && !line.contains(" cgroup  ");
    // And so does where its interpreters are.
    let interpreters = ["python", "bash", "node"].map(|name| format!("  ok       {name:<18} /"));
    let text: Vec<&str> = ran
        .stdout
        .lines()
        .filter(is_constant)
        .map(|line| interpreters.iter().find(|start| line.starts_with(*start)).map_or(line, |s| s))
        .collect();
    insta::assert_snapshot!(text.join("\n"), @r#"
    codexec 0.1.0
    state      HOME/state

    Sandbox
      ok       user               an unprivileged user of its own
      ok       pid                sees and signals no other process
      ok       mount              its own view of the file tree
      ok       network            no network interface
      ok       ipc                no shared memory with others
      ok       uts                a host name of its own
      ok       cgroup-namespace   does not see the host's cgroups
      ok       root               an empty read-only root directory
      ok       landlock           no file access, signals or abstract sockets, a second time
      ok       capabilities       no capability, not even in its own namespaces
      ok       no-new-privileges  no program can raise its rights
      ok       rlimits            bounded address space, files and core dumps
      ok       seccomp            only the system calls on the list
      tried    32 escapes from a real worker, 0 worked

    Languages
      ok       typescript         built in
      ok       javascript         built in
      ok       python             /
      ok       bash               /
      ok       node               /

    Servers
      ok       a                  1 tools; servers.json:1
      off      off                servers.json:1: it is disabled in that file
      FAILED   b_b                servers.json:1: it did not start: "/nowhere/x" was not found; install it, or write its whole path
      WARNING  servers.json:1: server "b b": it is called b_b here
      LEFT OUT servers.json:1: server "odd": `args` must be a list of strings, 1000 at most
    "#);
}

#[test]
fn doctor_as_json_has_the_same() {
    let entries = json!({"a": upstream(&["a"]), "far": {"url": "example.invalid/mcp"}});
    let ran =
        CliHome::with_servers(&entries).run(&["doctor", "--json", "--mcp-config", "servers.json"]);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let attempts = report["sandbox"]["attempts"].as_array().expect("attempts");
    assert!(attempts.len() >= 30, "{attempts:?}");
    assert!(attempts.iter().all(|attempt| attempt["blocked_by"].is_string()), "{attempts:?}");
    assert_eq!(
        json!([
            ran.code,
            report["ok"],
            report["version"],
            report["state"],
            report["servers"],
            report["problems"],
            report["sandbox"]["error"]
        ]),
        json!([
            0,
            true,
            env!("CARGO_PKG_VERSION"),
            "HOME/state",
            ["a"],
            ["servers.json:1: server \"far\": `url` is not a URL (relative URL without a base); \
              write it like https://host/mcp"],
            null
        ])
    );
}

/// It is started as it is written, so it is not left out.
#[test]
fn doctor_does_not_call_a_server_left_out_that_is_kept() {
    let desk =
        CliHome::with_servers(&json!({"a": {"command": "x", "args": ["${NOBODY_SET_THIS}"]}}));
    let ran = desk.run(&["doctor", "--no-check", "--mcp-config", "servers.json"]);
    let (_, servers) = ran.stdout.split_once("\nServers\n").expect("servers");
    assert_eq!(
        servers,
        "  named    a                  servers.json:1\n  WARNING  servers.json:1: server \"a\": ${NOBODY_SET_THIS} is not set; set \
         it, or write ${NOBODY_SET_THIS:-default}\n"
    );
}

#[test]
fn the_state_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = CliHome::new(&[]);
    assert_eq!(desk.run(&["exec", "-l", "ts", "1"]), fine("1"));
    let state = std::fs::metadata(desk.path().join("state")).expect("made");
    assert_eq!(state.permissions().mode() & 0o777, 0o700);
}

#[test]
fn version_is_the_packages() {
    check(&["--version"], &fine(concat!("codexec ", env!("CARGO_PKG_VERSION"))));
}
