//! The conformance suite of MCP looks at us as a server over HTTP: every scenario that a revision
//! requires. Its tools, prompts and resources are those of a server behind us, so that every request
//! goes through our edge and our gateway. The suite sends no tokens, so a proxy adds ours.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::server::Server;
use crate::conformance::{failed_checks, passed_scenarios};
use crate::support::{need, world};

/// A server of the older era behind us: it asks its questions in requests of its own.
#[test]
fn server_as_of_2025_11_25_in_front_of_a_program() {
    let Some(world) = world() else { return };
    check("2025-11-25", 30, &stdio_fixture(&world));
}

/// A server of the newer era behind us: it returns its questions as results.
#[test]
fn server_as_of_2026_07_28_in_front_of_a_url() {
    let Some(world) = world() else { return };
    let fixture = HttpFixture::start(&world);
    check("2026-07-28", 37, &json!({"type": "http", "url": fixture.url}));
}

/// The fixture as a server with a URL.
pub(crate) struct HttpFixture {
    child: Child,
    pub(crate) url: String,
}

impl HttpFixture {
    pub(crate) fn start(world: &Path) -> HttpFixture {
        let mut child = Command::new(world.join("venv/bin/python"))
            .args(["-c", FIXTURE, "http"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let mut url = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut url).expect("its URL");
        HttpFixture { child, url: url.trim_end().to_owned() }
    }
}

impl Drop for HttpFixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The fixture as a server that we start.
pub(crate) fn stdio_fixture(world: &Path) -> Value {
    json!({"command": world.join("venv/bin/python"), "args": ["-c", FIXTURE, "stdio"]})
}

const FIXTURE: &str = include_str!("fixture.py");

fn check(revision: &str, required: usize, fixture: &Value) {
    let Some(world) = world() else { return };
    let modules = world.join("npm/node_modules");
    let suite = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    if !need("the conformance suite", suite.exists()) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let hosts = format!("[http]\nhosts = [\"127.0.0.1:{port}\", \"localhost:{port}\"]\n");
    let server = Server::start(&hosts, &json!({"fixture": fixture}));
    let (upstream, token) = (server.authority.clone(), server.token.clone());
    // Ends with the test's process.
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let (upstream, token) = (upstream.clone(), token.clone());
            std::thread::spawn(move || forward(&client, &upstream, &token));
        }
    });
    let results = server.home.path().join("results");
    let output = Command::new(modules.join(".bin/node"))
        .arg(&suite)
        .args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp/server/fixture")])
        .args(["--requirements", revision, "--timeout", "60000", "-o"])
        .arg(&results)
        .env("HOME", server.home.path())
        .current_dir(server.home.path())
        .output()
        .expect("the suite runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = passed_scenarios(&said);
    assert!(
        output.status.success() && passed == required,
        "{passed} of {required} passed\n{}\n{said}\n{}",
        failed_checks(&results).join("\n"),
        String::from_utf8_lossy(&output.stderr),
    );
}

/// Copies a connection both ways, and adds the token to every request.
fn forward(client: &TcpStream, upstream: &str, token: &str) {
    let Ok(server) = TcpStream::connect(upstream) else { return };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::copy(&mut &server, &mut &*client);
            let _ = client.shutdown(Shutdown::Both);
        });
        let mut requests = BufReader::new(client);
        while copy_request(&mut requests, &server, token).is_some() {}
        let _ = server.shutdown(Shutdown::Both);
    });
}

/// Copies one request; `None` at the end of the connection.
fn copy_request(
    client: &mut BufReader<&TcpStream>,
    mut server: &TcpStream,
    token: &str,
) -> Option<()> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if client.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).ok()?;
    let head = format!("{head}Authorization: Bearer {token}\r\n\r\n");
    server.write_all(head.as_bytes()).ok()?;
    server.write_all(&body).ok()
}
