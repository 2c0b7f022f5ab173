//! The conformance suite of MCP looks at us as a server over HTTP. It sends no tokens, so a proxy
//! adds ours. Scenarios that need tools, prompts or resources of the suite's own are left out.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;

use serde_json::json;

use super::server::Server;
use crate::support::{need, world};

#[test]
fn server_as_of_2025_11_25() {
    let required = [
        "server-initialize",
        "ping",
        "completion-complete",
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "dns-rebinding-protection",
        "server-session-lifecycle",
        "server-sse-polling",
    ];
    check("2025-11-25", &required);
}

#[test]
fn server_as_of_2026_07_28() {
    let required = [
        "completion-complete",
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "sep-2164-resource-not-found",
        "dns-rebinding-protection",
        "http-header-validation",
    ];
    check("2026-07-28", &required);
}

fn check(revision: &str, required: &[&str]) {
    let Some(world) = world() else { return };
    let modules = world.join("npm/node_modules");
    let suite = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    if !need("the conformance suite", suite.exists()) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let hosts = format!("[http]\nhosts = [\"127.0.0.1:{port}\", \"localhost:{port}\"]\n");
    let server = Server::start(&hosts, &json!({}));
    let (upstream, token) = (server.authority.clone(), server.token.clone());
    // Ends with the test's process.
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let (upstream, token) = (upstream.clone(), token.clone());
            std::thread::spawn(move || forward(&client, &upstream, &token));
        }
    });
    let output = Command::new(modules.join(".bin/node"))
        .arg(&suite)
        .args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp")])
        .args(["--requirements", revision, "--timeout", "60000", "-o"])
        .arg(server.home.path().join("results"))
        .env("HOME", server.home.path())
        .current_dir(server.home.path())
        .output()
        .expect("the suite runs");
    let said = String::from_utf8_lossy(&output.stdout);
    for scenario in required {
        let line = format!("✓ {scenario}:");
        assert!(said.lines().any(|other| other.starts_with(&line)), "{scenario}: {said}");
    }
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
