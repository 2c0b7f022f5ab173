//! Every revision of MCP since Streamable HTTP: its handshake, and what only some of them have.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::server::{Answer, MODERN, Server, parse_answer};
use super::{LEGACY, call};

/// Opens a session, and returns its id.
fn open_session(server: &Server, version: &str) -> String {
    let opened = server.post("/mcp", &server.token, &[], &hello(version));
    assert_eq!(opened.message()["result"]["protocolVersion"], version, "{opened:?}");
    let id = opened.header("mcp-session-id").expect("a session").to_owned();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(server, &id, version, &told).status, 202);
    id
}

fn hello(version: &str) -> Value {
    let client = json!({"name": "it", "version": "0"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    request(1, "initialize", params)
}

fn request(id: u64, method: &str, params: Value) -> Value {
    let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
    request["params"] = params;
    request
}

fn post(server: &Server, session: &str, version: &str, message: &Value) -> Answer {
    let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", version)];
    server.post("/mcp", &server.token, &headers, message)
}

#[test]
fn each_revision_is_negotiated() {
    let server = Server::start("", &json!({}));
    for version in ["2025-03-26", "2025-06-18", LEGACY] {
        let session = open_session(&server, version);
        let run = request(2, "tools/call", call("return 6 * 7", "typescript"));
        let ran = post(&server, &session, version, &run).message();
        assert_eq!(ran["result"]["content"][0]["text"], "42", "{version}: {ran}");
    }
    // An unknown revision is answered with the newest one that has a handshake.
    let opened = server.post("/mcp", &server.token, &[], &hello("2019-01-01"));
    assert_eq!(opened.message()["result"]["protocolVersion"], LEGACY, "{opened:?}");
    let found = server.single("/mcp", &server.token, "server/discover", json!({})).message();
    let versions = found["result"]["supportedVersions"].as_array().expect("versions");
    assert!(versions.contains(&json!(MODERN)), "{found}");
    let ran = server.execute(&server.token, &json!({"code": "6 * 7", "language": "typescript"}));
    assert_eq!(ran["content"][0]["text"], "42", "{ran}");
}

#[test]
fn only_2025_03_26_has_batches() {
    let server = Server::start("", &json!({}));
    let batch = json!([
        request(2, "ping", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        request(3, "tools/call", call("return 6 * 7", "typescript")),
        request(4, "no/such", json!({})),
    ]);
    let session = open_session(&server, "2025-03-26");
    let answer = post(&server, &session, "2025-03-26", &batch);
    assert_eq!(answer.status, 200, "{answer:?}");
    let lines = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let answers: Vec<Value> = lines.filter_map(|data| serde_json::from_str(data).ok()).collect();
    let find = |id: u64| answers.iter().find(|answer| answer["id"] == id).expect("an answer");
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!(find(2)["result"], json!({}));
    assert_eq!(find(3)["result"]["content"][0]["text"], "42");
    assert_eq!(find(4)["error"]["code"], -32_601);
    let told = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert_eq!(post(&server, &session, "2025-03-26", &told).status, 202);
    let hello = json!([hello("2025-03-26")]);
    for wrong in [json!([]), json!([1]), json!([batch]), hello] {
        let answer = post(&server, &session, "2025-03-26", &wrong);
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
    let session = open_session(&server, LEGACY);
    assert_eq!(post(&server, &session, LEGACY, &batch).status, 400);
    assert_eq!(server.post("/mcp", &server.token, &[], &batch).status, 400);
}

/// Reads lines of a stream until one of them is accepted.
fn read_until<T>(stream: TcpStream, accept: impl Fn(&str) -> Option<T>) -> T {
    let lines = BufReader::new(stream).lines();
    let mut lines = lines.map(|line| line.expect("the stream goes on"));
    lines.find_map(|line| accept(line.trim_end())).expect("such a line")
}

fn open_stream(server: &Server, session: &str, last_event: Option<&str>) -> TcpStream {
    let bearer = format!("Bearer {}", server.token);
    let mut headers = vec![
        ("Authorization", bearer.as_str()),
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", LEGACY),
    ];
    headers.extend(last_event.map(|id| ("Last-Event-ID", id)));
    server.open("GET", "/mcp", &headers, "")
}

#[test]
fn a_broken_stream_is_resumed_where_it_broke() {
    let server = Server::start("", &json!({}));
    let session = open_session(&server, LEGACY);
    let code = "for (let n = 0; n < 4; n++) { progress(`step ${n}`); \
                await new Promise((done) => setTimeout(done, 200)); } return 'the end'";
    let mut run = request(7, "tools/call", call(code, "typescript"));
    run["params"]["_meta"] = json!({"progressToken": "p"});
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", LEGACY)];
    let stream = server.open_post("/mcp", &server.token, &headers, &run);
    let event = read_until(stream, |line| line.strip_prefix("id: ").map(str::to_owned));
    // Closing the stream does not cancel the call of a session.
    let resumed = open_stream(&server, &session, Some(&event));
    let answer = read_until(resumed, |line| {
        let message: Value = serde_json::from_str(line.strip_prefix("data: ")?).ok()?;
        (message["id"] == 7).then_some(message)
    });
    assert_eq!(answer["result"]["content"][0]["text"], "the end", "{answer}");
}

#[test]
fn a_quiet_stream_is_kept_alive() {
    let server = Server::start("", &json!({}));
    let session = open_session(&server, LEGACY);
    read_until(open_stream(&server, &session, None), |line| (line == ":").then_some(()));
}

#[test]
fn both_eras_work_over_a_socket_and_over_stdio_beside_http() {
    for era in [LEGACY, MODERN] {
        let home = tempfile::tempdir().expect("a directory");
        let socket = home.path().join("codexec.sock");
        let mut server = Server::with("", &json!({}), |command| {
            command.args(["--http", "127.0.0.1:0", "--stdio", "--socket"]).arg(&socket);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        });
        server.line_with("unix:");
        let run = request(2, "tools/call", call("return 6 * 7", "typescript"));
        let mut stdin = server.child.stdin.take().expect("piped");
        let mut stdout = BufReader::new(server.child.stdout.take().expect("piped"));
        let mut say = |message: &Value| writeln!(stdin, "{message}").expect("written");
        let mut hear = || {
            let mut line = String::new();
            stdout.read_line(&mut line).expect("a line");
            serde_json::from_str::<Value>(&line).unwrap_or_else(|_| panic!("{line:?}"))
        };
        let (over_stdio, over_socket) = match era == LEGACY {
            true => {
                say(&hello(LEGACY));
                assert_eq!(hear()["result"]["protocolVersion"], LEGACY);
                say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                say(&run);
                let over_stdio = hear();
                let opened = ask_socket(&socket, &server.token, &[], &hello(LEGACY));
                let id = opened.header("mcp-session-id").expect("a session").to_owned();
                let headers = [("Mcp-Session-Id", id.as_str())];
                let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                ask_socket(&socket, &server.token, &headers, &told);
                (over_stdio, ask_socket(&socket, &server.token, &headers, &run))
            }
            false => {
                let mut run = run;
                run["params"]["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "0"},
                });
                let mut discover = run.clone();
                discover["method"] = json!("server/discover");
                say(&discover);
                assert!(hear()["result"]["supportedVersions"].is_array());
                say(&run);
                let headers = [
                    ("MCP-Protocol-Version", MODERN),
                    ("Mcp-Method", "tools/call"),
                    ("Mcp-Name", "execute_code"),
                ];
                (hear(), ask_socket(&socket, &server.token, &headers, &run))
            }
        };
        for ran in [over_stdio, over_socket.message()] {
            assert_eq!(ran["result"]["content"][0]["text"], "42", "{era}: {ran}");
        }
    }
}

fn ask_socket(socket: &Path, token: &str, headers: &[(&str, &str)], message: &Value) -> Answer {
    let body = message.to_string();
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nHost: any\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("read");
    parse_answer(&text)
}
