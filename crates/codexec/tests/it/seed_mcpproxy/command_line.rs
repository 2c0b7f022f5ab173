//! `codexec code`, as `mcpproxy code` is typed there.

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use super::fill;
use crate::support::command;
use crate::world::World;

/// A user with these servers, at a terminal.
struct Terminal {
    home: tempfile::TempDir,
}

impl Terminal {
    fn new(servers: &Value) -> Terminal {
        let home = tempfile::tempdir().expect("a directory");
        let servers = json!({"mcpServers": servers}).to_string();
        std::fs::write(home.path().join("servers.json"), servers).expect("written");
        Terminal { home }
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = command(self.path());
        command.args(args).args(["--mcp-config", "servers.json"]).stdin(Stdio::null());
        command.output().expect("codexec runs")
    }

    /// What `code exec` prints with these options, and its exit code.
    #[track_caller]
    fn exec(&self, options: &[&str], code: i32, stdout: &str) -> String {
        let output = self.run(&[&["code", "exec"], options].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let stderr = text(&output.stderr);
        let actual = (text(&output.stdout), output.status.code());
        assert_eq!(actual, (stdout.to_owned(), Some(code)), "{options:?}: {stderr}");
        stderr
    }
}

#[test]
fn the_three_lines_of_the_page_work() {
    let Some(world) = World::find() else { return };
    fill(&world);
    let terminal = Terminal::new(&world.servers);
    let doubled = ["--code=({ result: input.value * 2 })", "--input={\"value\": 21}"];
    terminal.exec(&doubled, 0, "{\"ok\":true,\"value\":{\"result\":42}}\n");
    let typed = ["--language", "typescript", "--code=const x: number = 42; ({ result: x })"];
    terminal.exec(&typed, 0, "{\"ok\":true,\"value\":{\"result\":42}}\n");
    let path = world.folder.path().join("user.json");
    let input = json!({"path": path}).to_string();
    let code = "--code=call_tool('filesystem', 'read_text_file', {path: input.path})";
    let result = json!({"ok": true, "result": {"content": "{\"login\":\"octocat\"}"}});
    let expected = format!("{}\n", json!({"ok": true, "value": result}));
    terminal.exec(&[code, &format!("--input={input}")], 0, &expected);
}

#[test]
fn exit_codes_tell_who_failed() {
    let terminal = Terminal::new(&json!({}));
    let said = terminal.exec(
        &["--code", "console.log('on the way'); 5"],
        0,
        "{\"ok\":true,\"value\":5}\n",
    );
    assert_eq!(said, "on the way\n");
    let thrown = "{\"ok\":false,\"error\":{\"code\":\"RUNTIME_ERROR\",\"message\":\"x\",\"stack\":\"at <main> (1:11)\"}}\n";
    terminal.exec(&["--code", "throw new Error('x')"], 1, thrown);
    let late = "{\"ok\":false,\"error\":{\"code\":\"TIMEOUT\",\"message\":\"JavaScript execution timed out\"}}\n";
    terminal.exec(&["--code", "while (true) {}", "--timeout", "300"], 1, late);
    let refused = |message: &str| {
        let error = json!({"code": "INVALID_ARGS", "message": message});
        format!("{}\n", json!({"ok": false, "error": error}))
    };
    let range =
        "options.timeout_ms: 600001 is not allowed; it must be a whole number from 1 to 600000";
    terminal.exec(&["--code", "1", "--timeout=600001"], 2, &refused(range));
    let language = json!({"ok": false, "error": {
        "code": "INVALID_LANGUAGE",
        "message": "language: \"go\" is not supported; it must be javascript or typescript",
    }});
    terminal.exec(&["--code", "1", "--language", "go"], 2, &format!("{language}\n"));
    let said = terminal.exec(&[], 2, "");
    assert!(said.contains("<--code <CODE>|--file <FILE>|--script <NAME>>"), "{said}");
    let said = terminal.exec(&["--code", "1", "--file", "a.js"], 2, "");
    assert!(said.contains("cannot be used with"), "{said}");
    let said = terminal.exec(&["--code", "1", "--input", "[1]"], 2, "");
    assert_eq!(said, "error: --input: must be a JSON object\n");
    let said = terminal.exec(&["--file", "nowhere.js"], 2, "");
    assert!(said.starts_with("error: --file: nowhere.js: No such file"), "{said}");
}

#[test]
fn code_and_input_come_from_files() {
    let terminal = Terminal::new(&json!({}));
    let write =
        |name: &str, text: &str| std::fs::write(terminal.path().join(name), text).expect("written");
    write("a.js", "input.n + 1");
    write("b.ts", "const n: number = input.n; n + 2");
    write("params.json", "{\"n\": 1}");
    write("torn.json", "{");
    let input = "--input-file=params.json";
    terminal.exec(&["--file=a.js", input], 0, "{\"ok\":true,\"value\":2}\n");
    // As the file's name ends, though there it had to be said.
    terminal.exec(&["--file=b.ts", input], 0, "{\"ok\":true,\"value\":3}\n");
    terminal.exec(
        &["--file=b.ts", "--language=typescript", input],
        0,
        "{\"ok\":true,\"value\":3}\n",
    );
    let said = terminal.exec(&["--file=a.js", "--input-file=torn.json"], 2, "");
    assert!(said.starts_with("error: --input-file torn.json: not JSON"), "{said}");
    let both = ["--file=a.js", "--input={}", input];
    assert!(terminal.exec(&both, 2, "").contains("cannot be used with"));
}

#[test]
fn servers_and_calls_are_narrowed_by_options() {
    let Some(world) = World::find() else { return };
    let terminal = Terminal::new(&world.servers);
    let code =
        "--code=['time', 'everything'].map(server => call_tool(server, 'none', {}).error.code)";
    let denied = "{\"ok\":true,\"value\":[\"SERVER_NOT_ALLOWED\",\"TOOL_NOT_FOUND\"]}\n";
    terminal.exec(&[code, "--allowed-servers=everything,filesystem"], 0, denied);
    let code = "--code=for (let i = 0; i < 9; i++) call_tool('everything', 'echo', {message: ''});";
    let exceeded = json!({"ok": false, "error": {
        "code": "MAX_TOOL_CALLS_EXCEEDED", "message": "Exceeded maximum tool calls limit (3)",
    }});
    terminal.exec(&[code, "--max-tool-calls=3"], 1, &format!("{exceeded}\n"));
}
