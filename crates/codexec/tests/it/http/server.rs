//! `codexec serve --http`, and requests as bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{PATIENCE, command, keep_settings};

/// A server that listens on a free port of its own.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) home: TempDir,
    /// Host and port.
    pub(crate) authority: String,
    pub(crate) token: String,
    stderr: Mutex<Receiver<String>>,
}

/// A response, or as much of it as came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Server {
    pub(crate) fn start(settings: &str, servers: &Value) -> Server {
        Server::with(settings, servers, |command| {
            command.args(["--http", "127.0.0.1:0"]);
        })
    }

    pub(crate) fn with(
        settings: &str,
        servers: &Value,
        change: impl FnOnce(&mut Command),
    ) -> Server {
        let home = tempfile::tempdir().expect("a directory");
        keep_settings(home.path(), settings);
        let config = home.path().join("servers.json");
        std::fs::write(&config, json!({"mcpServers": servers}).to_string()).expect("written");
        let mut command = command(home.path());
        command.arg("serve").arg("--mcp-config").arg(&config).stdin(Stdio::null());
        change(&mut command);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("codexec starts");
        let (sender, stderr) = channel();
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        // Ends with the server's standard error.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut server = Server {
            child,
            home,
            authority: String::new(),
            token: String::new(),
            stderr: Mutex::new(stderr),
        };
        let line = server.line_with("listening on ");
        let place = line.split("listening on ").nth(1).and_then(|rest| rest.split(';').next());
        let place = place.expect("an address");
        server.authority = place.split_once("//").map_or(place, |(_, place)| place).to_owned();
        server.token = server.read_token();
        server
    }

    /// Waits until the pools are warm, so that they no longer grow.
    pub(crate) fn wait_until_ready(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.ask("GET", "/readyz", &[], "").status != 200 {
            assert!(Instant::now() < deadline, "it does not get ready");
        }
    }

    /// Waits until the server has written a line with this text.
    pub(crate) fn line_with(&self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let stderr = self.stderr.lock().expect("not poisoned");
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = stderr.recv_timeout(left).expect("a line of standard error");
            if line.contains(text) {
                return line;
            }
        }
    }

    fn read_token(&self) -> String {
        let path = self.state().join("http-token");
        std::fs::read_to_string(path).expect("the first token").trim_end().to_owned()
    }

    pub(crate) fn state(&self) -> std::path::PathBuf {
        self.home.path().join("state")
    }

    /// Runs another codexec in the same home.
    pub(crate) fn run(&self, args: &[&str]) -> std::process::Output {
        command(self.home.path()).args(args).output().expect("it runs")
    }

    /// Makes a token with `codexec token create`.
    pub(crate) fn make_token(&self, name: &str, scopes: &str) -> String {
        let mut args = vec!["token", "create", name, "--json"];
        if !scopes.is_empty() {
            args.extend(["--scope", scopes]);
        }
        let output = self.run(&args);
        let made: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(made["name"], name);
        made["token"].as_str().expect("a token").to_owned()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.authority).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.set_write_timeout(Some(PATIENCE)).expect("set");
        stream
    }

    /// Sends a request, and returns the connection with the response still in it.
    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(self.text(method, path, headers, body).as_bytes()).expect("sent");
        stream
    }

    fn text(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text.push_str(&format!("Host: {}\r\n", self.authority));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text + &format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    /// Sends a request and waits until the server has closed the connection.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        read_answer(self.open(method, path, headers, body))
    }

    /// Sends a request to the REST API; `body` is JSON, or nothing.
    pub(crate) fn api(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        read_answer(self.open_api(token, method, path, body))
    }

    /// Sends a request to the REST API that may be answered with a stream.
    pub(crate) fn open_api(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> TcpStream {
        let mut headers = vec![("X-API-Key", token)];
        let text = match body {
            Value::Null => String::new(),
            Value::Object(_) if body.get("stream") == Some(&json!(true)) => {
                headers.push(("Accept", "text/event-stream"));
                let mut body = body.clone();
                body.as_object_mut().expect("an object").remove("stream");
                body.to_string()
            }
            body => body.to_string(),
        };
        if !body.is_null() {
            headers.push(("Content-Type", "application/json"));
        }
        self.open(method, &format!("/api/v1{path}"), &headers, &text)
    }

    /// Posts JSON-RPC to `path` with a token; further headers decide the era.
    pub(crate) fn post(
        &self,
        path: &str,
        token: &str,
        headers: &[(&str, &str)],
        message: &Value,
    ) -> Answer {
        read_answer(self.open_post(path, token, headers, message))
    }

    pub(crate) fn open_post(
        &self,
        path: &str,
        token: &str,
        headers: &[(&str, &str)],
        message: &Value,
    ) -> TcpStream {
        let bearer = format!("Bearer {token}");
        let mut all = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend(headers);
        self.open("POST", path, &all, &message.to_string())
    }

    /// Sends a request of the newer era.
    pub(crate) fn single(&self, path: &str, token: &str, method: &str, params: Value) -> Answer {
        read_answer(self.open_single(path, token, method, params))
    }

    pub(crate) fn open_single(
        &self,
        path: &str,
        token: &str,
        method: &str,
        mut params: Value,
    ) -> TcpStream {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "0"},
        });
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or("-").to_owned();
        let headers =
            [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method), ("Mcp-Name", &name)];
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.open_post(path, token, &headers, &message)
    }

    /// Runs code in the newer era, and returns the result.
    pub(crate) fn execute(&self, token: &str, arguments: &Value) -> Value {
        let params = json!({"name": "execute_code", "arguments": arguments});
        self.single("/mcp", token, "tools/call", params).message()["result"].clone()
    }
}

pub(crate) const MODERN: &str = "2026-07-28";

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The events of a stream: their names and data.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        let parse = |event: &str| {
            let mut lines = event.lines();
            let name = lines.next()?.strip_prefix("event: ")?.to_owned();
            let data = lines.next()?.strip_prefix("data: ")?;
            Some((name, serde_json::from_str(data).expect("JSON")))
        };
        self.body.split("\n\n").filter_map(parse).collect()
    }

    /// The last JSON-RPC message, whether it came as JSON or in a stream.
    pub(crate) fn message(&self) -> Value {
        let mut lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        match lines.rfind(|data| !data.is_empty()) {
            Some(data) => serde_json::from_str(data).expect("JSON"),
            None => self.json(),
        }
    }
}

/// Reads until the server closes the connection.
pub(crate) fn read_answer(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(ended.is_ok() || !text.is_empty(), "no response: {ended:?}");
    parse_answer(&text)
}

pub(crate) fn parse_answer(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { unchunk(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        let Some(chunk) = after.get(..size).filter(|chunk| !chunk.is_empty()) else { break };
        body.push_str(chunk);
        rest = after.get(size + 2..).unwrap_or_default();
    }
    body
}

/// Waits until a guest of this server has, or no longer has, a process with this argument.
pub(crate) fn wait_for_process(server: &Server, argument: &str, expected: bool) {
    crate::support::wait_for_process(server.child.id(), argument, expected);
}

/// Sends SIGTERM.
pub(crate) fn terminate(server: &Server) {
    let pid = server.child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
    assert!(sent.success());
}

pub(crate) fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}
