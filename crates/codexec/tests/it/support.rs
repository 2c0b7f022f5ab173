//! Driving the built binary as a client would. The only file that knows how it is started.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The binary under test. As a plain user it is a copy that this user can reach.
pub(crate) fn codexec() -> PathBuf {
    std::env::var_os("CODEXEC_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_codexec").into(), PathBuf::from)
}

/// Where `cargo xtask test` has put the real servers and clients.
pub(crate) fn world() -> Option<PathBuf> {
    let world = std::env::var_os("CODEXEC_WORLD").map(PathBuf::from);
    need("the test world (run `cargo xtask test`)", world.is_some()).then_some(world).flatten()
}

/// Skips loudly on a laptop and fails in CI: a security test that quietly did not run
/// is worse than none.
pub(crate) fn need(what: &str, is_there: bool) -> bool {
    if !is_there {
        assert!(std::env::var_os("CODEXEC_REQUIRE_ALL").is_none(), "{what} is required here");
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what} is missing");
    }
    is_there
}

/// A command that sees nothing of the tester's own settings.
pub(crate) fn command(home: &Path) -> Command {
    let mut command = Command::new(codexec());
    command
        .env_remove("MCP_CONFIG_PATH")
        .env_remove("MCP_SERVERS_CONFIG")
        .env_remove("CODEXEC_TOOLSET")
        .env_remove("CLAUDE_CONFIG_DIR")
        .env_remove("CODEX_HOME")
        .env_remove("OPENCODE_CONFIG")
        .env_remove("CLINE_MCP_SETTINGS_PATH")
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", home)
        .env("CODEXEC_HOME", home.join("state"))
        .current_dir(home);
    command
}

/// Writes the settings of whoever lives in this home.
pub(crate) fn keep_settings(home: &Path, settings: &str) {
    let state = home.join("state");
    std::fs::DirBuilder::new().mode(0o700).create(&state).expect("made");
    std::fs::write(state.join("config.toml"), settings).expect("written");
}

/// `codexec serve` with a client on its standard streams.
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) home: TempDir,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Answers that came before somebody waited for them, and everything without an id.
    pub(crate) others: Vec<Value>,
    next_id: u64,
}

/// What a tool call gave.
#[derive(Debug, PartialEq)]
pub(crate) struct ToolText {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

impl Client {
    /// Starts the server with these `mcpServers` and shakes hands as 2025-11-25 says.
    pub(crate) fn start(servers: &Value) -> Client {
        Client::with(servers, |_| {})
    }

    pub(crate) fn with(servers: &Value, change: impl FnOnce(&mut Command)) -> Client {
        let mut client = Client::raw(servers, change);
        client.shake_hands();
        client
    }

    /// Ends the server and starts another in the same home.
    pub(crate) fn restart(&mut self, change: impl FnOnce(&mut Command)) {
        self.leave();
        let home = std::mem::replace(&mut self.home, tempfile::tempdir().expect("a directory"));
        let others = std::mem::take(&mut self.others);
        *self = Client::in_home(home, change);
        self.others = others;
        self.shake_hands();
    }

    pub(crate) fn shake_hands(&mut self) {
        self.shake_hands_as("it");
    }

    pub(crate) fn shake_hands_as(&mut self, name: &str) {
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": name, "version": "0"},
        });
        let reply = self.request("initialize", &hello);
        assert_eq!(reply["result"]["protocolVersion"], "2025-11-25", "{reply}");
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Starts the server and says nothing yet.
    pub(crate) fn raw(servers: &Value, change: impl FnOnce(&mut Command)) -> Client {
        let home = tempfile::tempdir().expect("a directory");
        let config = home.path().join("servers.json");
        std::fs::write(&config, json!({"mcpServers": servers}).to_string()).expect("written");
        Client::in_home(home, change)
    }

    fn in_home(home: TempDir, change: impl FnOnce(&mut Command)) -> Client {
        let mut client = Client::sharing(home.path(), change);
        client.home = home;
        client
    }

    /// In a home that others have, too. Says nothing yet.
    pub(crate) fn sharing(home: &Path, change: impl FnOnce(&mut Command)) -> Client {
        let config = home.join("servers.json");
        let stderr = home.join("stderr");
        let stderr = OpenOptions::new().append(true).create(true).open(stderr).expect("a file");
        let mut command = command(home);
        command.arg("serve").arg("--mcp-config").arg(&config);
        change(&mut command);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("codexec starts");
        let stdout = child.stdout.take().expect("piped");
        let (sender, lines) = channel();
        // Ends with the server's standard output.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.expect("standard output is UTF-8");
                let message: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|_| panic!("standard output holds only JSON-RPC: {line}"));
                assert_eq!(message["jsonrpc"], "2.0", "{line}");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let home = tempfile::tempdir().expect("a directory");
        Client { child, home, stdin, lines, others: Vec::new(), next_id: 1 }
    }

    pub(crate) fn write(&mut self, message: &Value) {
        self.write_bytes(format!("{message}\n").as_bytes());
    }

    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("still open");
        stdin.write_all(bytes).expect("the server reads");
        stdin.flush().expect("the server reads");
    }

    /// Sends a request and returns its id at once. Code without a language is TypeScript.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        let mut params = params.clone();
        let has = |field: &str| params["arguments"].get(field).is_some();
        if params["name"] == "execute_code" && has("code") && !has("language") && !has("session") {
            params["arguments"]["language"] = json!("typescript");
        }
        self.send_as_is(method, &params)
    }

    /// Sends a request without a change.
    pub(crate) fn send_as_is(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The whole answer to a request that was sent.
    pub(crate) fn wait(&mut self, id: u64) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.others.iter().position(|message| message["id"] == id) {
                return self.others.remove(at);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.lines.recv_timeout(left);
            let message = message.unwrap_or_else(|_| {
                panic!("no answer to request {id}; the server said: {}", self.stderr())
            });
            self.others.push(message);
        }
    }

    /// The next message of any kind.
    pub(crate) fn next_message(&mut self) -> Value {
        if !self.others.is_empty() {
            return self.others.remove(0);
        }
        self.lines.recv_timeout(PATIENCE).expect("a message")
    }

    /// The next message of any kind, if one comes until then.
    pub(crate) fn message_until(&mut self, deadline: Instant) -> Option<Value> {
        let left = deadline.saturating_duration_since(Instant::now());
        if self.others.is_empty() { self.lines.recv_timeout(left).ok() } else { self.others.pop() }
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.wait(id)
    }

    pub(crate) fn send_call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.send("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Waits until a guest has a process with this argument, and so has done what comes before it.
    pub(crate) fn wait_for_process(&self, argument: &str) {
        self.wait_for_processes(argument, true);
    }

    /// Waits until no guest has a process with this argument any more.
    pub(crate) fn wait_for_no_process(&self, argument: &str) {
        self.wait_for_processes(argument, false);
    }

    fn wait_for_processes(&self, argument: &str, expected: bool) {
        wait_for_process(self.child.id(), argument, expected);
    }

    /// The text has no address of artifacts: the id in it is another one each time.
    pub(crate) fn wait_call(&mut self, id: u64) -> ToolText {
        let reply = self.wait(id);
        let result = &reply["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("no text in {reply}"));
        ToolText {
            text: without_ids(text).replace(" codexec://executions/exec_../artifacts", ""),
            is_error: result["isError"].as_bool().unwrap_or(false),
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> ToolText {
        let id = self.send_call(tool, arguments);
        self.wait_call(id)
    }

    /// Runs TypeScript.
    pub(crate) fn run(&mut self, code: &str) -> ToolText {
        self.call("execute_code", &json!({"code": code}))
    }

    pub(crate) fn ping(&mut self) -> Duration {
        let begun = Instant::now();
        let reply = self.request("ping", &json!({}));
        assert_eq!(reply["result"], json!({}), "{reply}");
        begun.elapsed()
    }

    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.home.path().join("stderr")).unwrap_or_default()
    }

    /// Closes our end and waits until the server has ended by itself.
    /// Says nothing more.
    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn leave(&mut self) -> std::process::ExitStatus {
        self.close_input();
        let mut status = None;
        within(PATIENCE, || {
            status = self.child.try_wait().expect("our child");
            status.is_some()
        });
        status.expect("the server did not end")
    }
}

/// Waits for a state of the host that nobody announces.
pub(crate) fn within(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a process below `server` has, or no longer has, this argument. Polls, because the
/// kernel tells nobody but the parent about a process.
pub(crate) fn wait_for_process(server: u32, argument: &str, expected: bool) {
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    };
    let is_so = || descendants(server).iter().any(has) == expected;
    assert!(within(PATIENCE, is_so), "process with {argument}: not {expected} in time");
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ToolText {
    #[track_caller]
    pub(crate) fn fine(self) -> String {
        assert!(!self.is_error, "{}", self.text);
        self.text
    }

    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert!(self.is_error, "{}", self.text);
        self.text
    }
}

/// The text with `exec_..` instead of the ids in addresses of artifacts.
pub(crate) fn without_ids(text: &str) -> String {
    const START: &str = "codexec://executions/exec_";
    let mut parts = text.split(START);
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let hex = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        let (id, rest) = part.split_at(hex);
        short.push_str(START);
        short.push_str(if rest.starts_with("/artifacts") { ".." } else { id });
        short.push_str(rest);
    }
    short
}

/// The processes below `pid`, all generations.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in parentheses may hold anything; what follows its end is regular.
        let after = stat.rsplit_once(") ").map(|(_, after)| after).unwrap_or_default();
        if let Some(parent) = after.split(' ').nth(1).and_then(|text| text.parse::<u32>().ok()) {
            parents.push((child, parent));
        }
    }
    let mut found = vec![pid];
    let mut index = 0;
    while index < found.len() {
        let parent = found[index];
        found.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(child, _)| *child));
        index += 1;
    }
    found.remove(0);
    found
}

/// Width and height of a PNG in base64; a panic for anything else.
pub(crate) fn png_size(base64: &str) -> (u32, u32) {
    let bytes = BASE64.decode(base64).expect("base64");
    assert_eq!(bytes.get(..8), Some(&b"\x89PNG\r\n\x1a\n"[..]), "{base64:.40}");
    assert_eq!(bytes.get(12..16), Some(&b"IHDR"[..]));
    assert!(bytes.ends_with(b"IEND\xaeB`\x82"), "a PNG has an end");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"));
    (number(16), number(20))
}

/// A home directory with these files.
pub(crate) fn home_with(files: &[(&str, &str)]) -> TempDir {
    let home = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        write_file(home.path(), name, text);
    }
    home
}

/// With the folders above it.
pub(crate) fn write_file(home: &Path, name: &str, text: &str) {
    let path = home.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    std::fs::write(path, text).expect("written");
}
