//! The HTTP edge: tokens, checks, MCP in both eras, and the end of the server.

mod attacks;
mod bounds;
mod bridge;
mod clients;
pub(crate) mod conformance;
mod isolation;
mod metrics;
mod relay;
mod rest;
mod revisions;
mod schemathesis;
pub(crate) mod server;
mod shutdown;
mod slow_readers;
mod trace;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{PATIENCE, command, need};
use server::{MODERN, Server, exists, parse_answer, read_answer, terminate, wait_for_process};

const LEGACY: &str = "2025-11-25";

#[test]
fn nobody_gets_in_without_a_token() {
    let server = Server::start("", &json!({}));
    let get = |path: &str, headers: &[(&str, &str)]| server.ask("GET", path, headers, "");
    assert_eq!(get("/live", &[]).json(), json!({"status": "live"}));
    assert_eq!(get("/healthz", &[]).json(), json!({"status": "ok"}));
    server.wait_until_ready();
    let key = [("X-API-Key", server.token.as_str())];
    let health = get("/health", &key).json();
    assert_eq!((&health["status"], &health["healthy"]), (&json!("ok"), &json!(true)), "{health}");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for path in ["/mcp", "/mcp/compact", "/nothing", "/mcp/nothing", "/api/v1/executions"] {
        for token in ["", "cxt_wrong", &server.token[1..]] {
            let answer = server.post(path, token, &[], &list);
            assert_eq!(answer.status, 401, "{path} {token:?}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert_eq!(answer.json()["code"], "UNAUTHORIZED");
        }
    }
    assert_eq!(get("/nothing", &key).json()["code"], "NOT_FOUND");
    assert_eq!(server.post("/mcp/nothing", &server.token, &[], &list).status, 404);
    let with = |name, value| {
        let bearer = format!("Bearer {}", server.token);
        server.ask("POST", "/mcp", &[("Authorization", &bearer), (name, value)], "{}").status
    };
    assert_eq!(with("Host", "evil.example"), 403);
    assert_eq!(with("Origin", "http://evil.example"), 403);
    assert_eq!(with("Content-Type", "text/plain"), 415);
    let mode = std::fs::metadata(server.state().join("http-token")).expect("it").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
}

fn hello() -> Value {
    let params = json!({
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "it", "version": "0"},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

fn call(code: &str, language: &str) -> Value {
    json!({"name": "execute_code", "arguments": {"code": code, "language": language}})
}

#[test]
fn http_7_sessions_belong_to_their_token() {
    let server = Server::start("", &json!({}));
    let (ann, bob) = (server.make_token("ann", ""), server.make_token("bob", ""));
    let opened = server.post("/mcp", &ann, &[], &hello());
    assert_eq!(opened.message()["result"]["protocolVersion"], LEGACY, "{opened:?}");
    let id = opened.header("mcp-session-id").expect("a session").to_owned();
    let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", LEGACY)];
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.post("/mcp", &ann, &headers, &told).status, 202);
    let request = |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let run = request(2, "tools/call", call("return 6 * 7", "typescript"));
    let ran = server.post("/mcp", &ann, &headers, &run).message();
    assert_eq!(ran["result"]["content"][0]["text"], "42", "{ran}");
    let list = request(3, "tools/list", json!({}));
    assert_eq!(server.post("/mcp", &bob, &headers, &list).status, 404);
    assert_eq!(server.post("/mcp/codexec", &ann, &headers, &list).status, 404);
    assert_eq!(server.post("/mcp", &ann, &headers[1..], &list).status, 400);
    let forged = [("Mcp-Session-Id", "00000000-0000-0000-0000-000000000000")];
    assert_eq!(server.post("/mcp", &ann, &forged, &list).status, 404);
    // The end of the session is the end of what runs in it.
    let marker = "31415.926";
    let sleep = request(4, "tools/call", call(&format!("sleep {marker}"), "bash"));
    let stream = server.open_post("/mcp", &ann, &headers, &sleep);
    wait_for_process(&server, marker, true);
    let bearer = format!("Bearer {ann}");
    let all = [("Authorization", bearer.as_str()), headers[0], headers[1]];
    assert_eq!(server.ask("DELETE", "/mcp", &all, "").status, 204);
    wait_for_process(&server, marker, false);
    drop(read_answer(stream));
    assert_eq!(server.ask("DELETE", "/mcp", &all, "").status, 404);
}

#[test]
fn single_requests_stand_alone_and_closing_the_stream_cancels() {
    let server = Server::start("", &json!({}));
    let token = &server.token;
    let found = server.single("/mcp", token, "server/discover", json!({})).message();
    let versions = &found["result"]["supportedVersions"];
    assert!(versions.as_array().is_some_and(|all| all.contains(&json!(MODERN))), "{found}");
    let result = server.execute(token, &json!({"code": "return 6 * 7", "language": "typescript"}));
    assert_eq!(result["content"][0]["text"], "42", "{result}");
    let unknown = server.single("/mcp", token, "no/such", json!({}));
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!(-32_601)));
    let wrong = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")];
    assert_eq!(server.post("/mcp", token, &headers, &wrong).status, 400);
    let bearer = format!("Bearer {token}");
    let old = [("Authorization", bearer.as_str()), headers[0], ("Accept", "text/event-stream")];
    assert_eq!(server.ask("GET", "/mcp", &old, "").status, 405);
    let marker = "27182.818";
    let params = call(&format!("echo begun; sleep {marker}"), "bash");
    let stream = server.open_single("/mcp", token, "tools/call", params);
    wait_for_process(&server, marker, true);
    drop(stream);
    wait_for_process(&server, marker, false);
}

#[test]
fn http_4_tokens_do_what_their_scopes_say() {
    let nowhere = |name: &str| json!({"command": format!("/nowhere/{name}")});
    let servers = json!({"mail": nowhere("mail"), "calendar": nowhere("calendar")});
    let server = Server::start("", &servers);
    let ann = server.make_token("ann", "");
    // A token for one server does not learn of the others.
    let mail = server.make_token("mail", "server:mail");
    let health = json!({"name": "health", "arguments": {}});
    for (token, sees_all) in [(&server.token, true), (&mail, false)] {
        let health = server.single("/mcp", token, "tools/call", health.clone()).body;
        assert!(health.contains("mail"), "{health}");
        assert_eq!(health.contains("calendar"), sees_all, "{health}");
    }
    let reader = server.make_token("reader", "read,toolset:compact");
    let python = server.make_token("python", "language:python,limit:timeout-ms=2000");
    let ran =
        server.execute(&ann, &json!({"code": "console.log('of ann')", "language": "typescript"}));
    let id = ran["_meta"]["codexec/execution"]["id"].as_str().expect("an id").to_owned();
    let read = |token: &str| {
        let uri = json!({"uri": format!("codexec://executions/{id}")});
        server.single("/mcp", token, "resources/read", uri).message()
    };
    // Each token sees its own executions; the first one sees all.
    assert_eq!(read(&ann)["result"]["contents"][0]["text"], "of ann", "{}", read(&ann));
    assert_eq!(read(&server.token)["result"]["contents"][0]["text"], "of ann");
    assert!(read(&python)["error"].is_object(), "{}", read(&python));
    let refused = server.single("/mcp", &reader, "tools/call", call("return 1", "typescript"));
    assert!(refused.body.contains("may only read"), "{refused:?}");
    let health = server.single("/mcp", &reader, "tools/call", health).message();
    assert_ne!(health["result"]["isError"], true, "{health}");
    let other = server.single("/mcp/codexec", &reader, "tools/list", json!({}));
    assert_eq!((other.status, &other.json()["code"]), (403, &json!("SCOPE_MISSING")));
    let text = |result: Value| result["content"][0]["text"].as_str().unwrap_or("").to_owned();
    let js = text(server.execute(&python, &json!({"code": "return 1", "language": "typescript"})));
    assert!(js.contains("not enabled"), "{js}");
    let long = json!({"code": "1", "language": "python", "timeout_ms": 5_000});
    let long = text(server.execute(&python, &long));
    assert!(long.contains("from 1 to 2000"), "{long}");
    // A token that is revoked is out at once, with what it runs.
    let marker = "16180.339";
    let sleep = call(&format!("sleep {marker}"), "bash");
    let stream = server.open_single("/mcp", &ann, "tools/call", sleep);
    wait_for_process(&server, marker, true);
    assert!(server.run(&["token", "revoke", "ann"]).status.success());
    assert_eq!(server.single("/mcp", &ann, "tools/list", json!({})).status, 401);
    let listed = server.run(&["token", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let names: Vec<&Value> =
        listed["tokens"].as_array().expect("a list").iter().map(|token| &token["name"]).collect();
    assert_eq!(names, ["first", "mail", "reader", "python"]);
    // Any request notices that a token is gone.
    server.single("/mcp", &server.token, "tools/list", json!({}));
    wait_for_process(&server, marker, false);
    drop(stream);
}

#[test]
fn mcpproxy_clients_run_code_and_metrics_count_it() {
    let server = Server::start("", &json!({}));
    let reader = server.make_token("reader", "read");
    let exec = |token: &str, body: &str| {
        let headers = [("X-API-Key", token), ("Content-Type", "application/json")];
        let answer = server.ask("POST", "/api/v1/code/exec", &headers, body);
        (answer.status, answer.json())
    };
    let typed = json!({
        "code": "const x: number = input.n; ({ result: x })",
        "language": "typescript",
        "input": {"n": 42},
    });
    let token = server.token.as_str();
    let ran = exec(token, &typed.to_string());
    assert_eq!(ran, (200, json!({"ok": true, "result": {"result": 42}})));
    let (status, threw) = exec(token, r#"{"code": "throw new Error('no')"}"#);
    assert_eq!((status, &threw["ok"]), (200, &json!(false)), "{threw}");
    let (status, missing) = exec(token, "{}");
    assert_eq!((status, &missing["error"]["code"]), (400, &json!("MISSING_CODE")));
    assert_eq!(exec(token, "[]").1["error"]["code"], "INVALID_REQUEST");
    assert_eq!(exec(&reader, &typed.to_string()).0, 403);
    let key = [("X-API-Key", token)];
    let scripts = server.ask("GET", "/api/v1/code/scripts", &key, "").json();
    assert_eq!(scripts, json!({"scripts": []}));
    assert_eq!(server.ask("GET", "/api/v1/code/exec", &key, "").status, 405);
    assert_eq!(server.ask("GET", "/metrics", &[], "").status, 401);
    let metrics = server.ask("GET", "/metrics", &key, "").body;
    let line = "http_requests_total{method=\"POST\",endpoint=\"mcpproxy_exec\",status=\"200\"} 2";
    assert!(metrics.lines().any(|other| other == line), "{metrics}");
    assert!(metrics.contains("\ncodexec_executions_running 0\n"), "{metrics}");
}

#[test]
fn http_2_slow_clients_and_too_many_of_them_are_cut_off() {
    let settings = "[http]\nbody-timeout-s = 1\nheader-timeout-s = 4\nconnections-per-peer = 3\n";
    let server = Server::start(settings, &json!({}));
    let mut slow_head = server.connect();
    slow_head.write_all(b"GET /live HTTP/1.1\r\nHost: ").expect("sent");
    let mut nothing = Vec::new();
    let _ = slow_head.read_to_end(&mut nothing);
    assert!(!String::from_utf8_lossy(&nothing).contains(" 200 "));
    let mut slow_body = server.connect();
    let (host, token) = (&server.authority, &server.token);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    slow_body.write_all(head.as_bytes()).expect("sent");
    assert_eq!(read_answer(slow_body).status, 408);
    // Open streams count as connections; the header timeout does not end them.
    let bearer = format!("Bearer {token}");
    let opened = server.post("/mcp", token, &[], &hello());
    let id = opened.header("mcp-session-id").expect("a session").to_owned();
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", id.as_str()),
    ];
    let mut streams = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while streams.len() < 3 {
        let mut stream = server.open("GET", "/mcp", &headers, "");
        let mut first = [0; 12];
        stream.read_exact(&mut first).expect("a response");
        // Connections of earlier requests may still be closing.
        match &first {
            b"HTTP/1.1 200" => streams.push(stream),
            other => assert_eq!(other, b"HTTP/1.1 503"),
        }
        assert!(Instant::now() < deadline, "no more streams: {}", streams.len());
    }
    let refused = server.ask("GET", "/live", &[], "");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    drop(streams);
    let deadline = Instant::now() + PATIENCE;
    while server.ask("GET", "/live", &[], "").status != 200 {
        assert!(Instant::now() < deadline, "connections are not given back");
    }
}

#[test]
fn a_unix_socket_and_stdio_are_served_beside_http_until_sigterm() {
    let home = tempfile::tempdir().expect("a directory");
    let socket = home.path().join("codexec.sock");
    let mut server = Server::with("", &json!({}), |command| {
        command.args(["--http", "127.0.0.1:0", "--stdio", "--socket"]).arg(&socket);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
    });
    server.line_with("unix:");
    let mode = std::fs::symlink_metadata(&socket).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = UnixStream::connect(&socket).expect("it listens");
    stream
        .write_all(b"GET /live HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n")
        .expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("read");
    assert_eq!(parse_answer(&text).status, 200);
    let mut stdin = server.child.stdin.take().expect("piped");
    writeln!(stdin, "{}", hello()).expect("written");
    drop(stdin);
    let mut said = String::new();
    let stdout = server.child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut said).expect("a line");
    assert!(said.contains(LEGACY), "{said}");
    // The end of stdin has ended only that client.
    assert_eq!(server.ask("GET", "/live", &[], "").status, 200);
    let marker = "14142.135";
    let sleep = call(&format!("sleep {marker}"), "bash");
    let quick = call("sleep 0.2; echo finished", "bash");
    let quick = server.open_single("/mcp", &server.token, "tools/call", quick);
    let slow = server.open_single("/mcp", &server.token, "tools/call", sleep);
    wait_for_process(&server, marker, true);
    terminate(&server);
    assert!(read_answer(quick).message().to_string().contains("finished"));
    let killed = read_answer(slow);
    assert_eq!(killed.message()["result"]["isError"], true, "{killed:?}");
    assert!(server.child.wait().expect("it ends").success());
    assert!(!exists(&socket));
}

#[test]
fn other_machines_need_tls() {
    let home = tempfile::tempdir().expect("a directory");
    let output = command(home.path()).args(["serve", "--http", "0.0.0.0:0"]).output().expect("run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("needs TLS") && output.status.code() == Some(2), "{said}");
    let has_openssl = std::process::Command::new("openssl").arg("version").output().is_ok();
    if !need("openssl", has_openssl) {
        return;
    }
    let (key, certificate) = (home.path().join("key.pem"), home.path().join("cert.pem"));
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "2", "-subj"])
        .args(["/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let settings = format!("[http]\ntls-certificate = {certificate:?}\ntls-key = {key:?}\n");
    let server = Server::start(&settings, &json!({}));
    let port = server.authority.rsplit_once(':').expect("a port").1;
    let program = "import ssl, sys, urllib.request\n\
        context = ssl.create_default_context(cafile=sys.argv[2])\n\
        print(urllib.request.urlopen(sys.argv[1], context=context, timeout=60).read().decode())";
    let output = std::process::Command::new("python3")
        .args(["-c", program, &format!("https://localhost:{port}/live")])
        .arg(&certificate)
        .output()
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("live"), "{}", String::from_utf8_lossy(&output.stderr));
}
