//! One server passed through at a path of its own, with tokens, scopes and eras.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::LEGACY;
use super::conformance::{HttpFixture, stdio_fixture};
use super::server::{Answer, MODERN, Server};
use crate::support::world;

const PATH: &str = "/mcp/server/fixture";

/// A session of a client that supports every question.
struct Session<'a> {
    server: &'a Server,
    token: &'a str,
    id: String,
}

impl<'a> Session<'a> {
    fn open(server: &'a Server, token: &'a str) -> Session<'a> {
        let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        let client = json!({"name": "it", "version": "0"});
        let params = json!({"protocolVersion": LEGACY, "capabilities": capabilities,
            "clientInfo": client});
        let hello = request(1, "initialize", params);
        let opened = server.post(PATH, token, &[], &hello);
        let id = opened.header("mcp-session-id");
        let id = id.unwrap_or_else(|| panic!("no session: {opened:?}")).to_owned();
        let session = Session { server, token, id };
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.post(&told).status, 202);
        session
    }

    fn post(&self, message: &Value) -> Answer {
        self.server.post(PATH, self.token, &self.headers(), message)
    }

    fn open_post(&self, message: &Value) -> TcpStream {
        self.server.open_post(PATH, self.token, &self.headers(), message)
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [("Mcp-Session-Id", &self.id), ("MCP-Protocol-Version", LEGACY)]
    }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
    request["params"] = params;
    request
}

fn call(tool: &str, arguments: Value) -> Value {
    let mut call = json!({"name": tool});
    call["arguments"] = arguments;
    call
}

/// Reads messages of a stream until one of them is accepted.
fn read_until(stream: &mut BufReader<TcpStream>, accept: impl Fn(&Value) -> bool) -> Value {
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).expect("a line"), 0, "the stream has ended");
        let data = line.trim_end().strip_prefix("data: ").unwrap_or_default();
        match serde_json::from_str(data) {
            Ok(message) if accept(&message) => return message,
            Ok(_) | Err(_) => {}
        }
    }
}

#[test]
fn http_16_questions_reach_only_the_token_whose_call_asks() {
    let Some(world) = world() else { return };
    let server = Server::start("", &json!({"fixture": stdio_fixture(&world)}));
    let (ann, bob) = (server.make_token("ann", ""), server.make_token("bob", ""));
    let (ann, bob) = (Session::open(&server, &ann), Session::open(&server, &bob));
    let ask = |session: &Session<'_>, message: &str| {
        let call = call("test_elicitation", json!({"message": message}));
        let mut stream = BufReader::new(session.open_post(&request(5, "tools/call", call)));
        let question = read_until(&mut stream, |message| message["method"].is_string());
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["message"], message);
        (stream, question["id"].clone())
    };
    // Bob's call is the older one, and would be asked if there was only one connection.
    let (mut of_bob, id_of_bob) = ask(&bob, "bob?");
    let (mut of_ann, id_of_ann) = ask(&ann, "ann?");
    for (session, id, stream) in [(&ann, id_of_ann, &mut of_ann), (&bob, id_of_bob, &mut of_bob)] {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}});
        assert_eq!(session.post(&answer).status, 202);
        let result = read_until(stream, |message| message["id"] == 5);
        assert!(result.to_string().contains("action=decline"), "{result}");
    }
}

/// Clients with a session, servers without: results that ask become requests.
#[test]
fn a_session_in_front_of_a_server_without_sessions() {
    let Some(world) = world() else { return };
    let fixture = HttpFixture::start(&world);
    let server = Server::start("", &json!({"fixture": {"type": "http", "url": fixture.url}}));
    let session = Session::open(&server, &server.token);
    let call = call("test_input_required_result_multiple_inputs", json!({}));
    let mut stream = BufReader::new(session.open_post(&request(5, "tools/call", call)));
    let mut asked = Vec::new();
    for _ in 0..3 {
        let question = read_until(&mut stream, |message| message["method"].is_string());
        let method = question["method"].as_str().expect("a method").to_owned();
        let result = match method.as_str() {
            "elicitation/create" => json!({"action": "accept", "content": {"name": "Ann"}}),
            "sampling/createMessage" => json!({"role": "assistant", "model": "m",
                "content": {"type": "text", "text": "Good morning"}}),
            _ => json!({"roots": [{"uri": "file:///home/ann"}]}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(session.post(&answer).status, 202);
        asked.push(method);
    }
    let result = read_until(&mut stream, |message| message["id"] == 5).to_string();
    for answer in ["Ann", "Good morning", "file:///home/ann"] {
        assert!(result.contains(answer), "{result}");
    }
    asked.sort();
    assert_eq!(asked, ["elicitation/create", "roots/list", "sampling/createMessage"]);
}

/// Clients without a session, servers with one: requests that ask become results.
#[test]
fn ask_2_single_requests_in_front_of_a_server_with_sessions() {
    let Some(world) = world() else { return };
    let server = Server::start("", &json!({"fixture": stdio_fixture(&world)}));
    let other = server.make_token("other", "");
    let send = |token: &str, message: &str, more: &Value| {
        let mut params = call("test_sampling", json!({"prompt": message}));
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {"sampling": {}},
        });
        let headers = [
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "test_sampling"),
        ];
        server.post(PATH, token, &headers, &request(5, "tools/call", params)).message()
    };
    let asked = send(&server.token, "Hello?", &json!({}))["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, question) =
        asked["inputRequests"].as_object().and_then(|all| all.iter().next()).expect("a question");
    assert_eq!(question["method"], "sampling/createMessage");
    let content = json!({"type": "text", "text": "Good morning"});
    let answer = json!({"role": "assistant", "model": "m", "content": content});
    let again = json!({"requestState": asked["requestState"], "inputResponses": {key: answer}});
    // The state belongs to one token and one request.
    assert!(send(&other, "Hello?", &again)["error"].is_object());
    assert!(send(&server.token, "Good bye?", &again)["error"].is_object());
    let result = send(&server.token, "Hello?", &again);
    assert!(result.to_string().contains("LLM response: Good morning"), "{result}");
}

#[test]
fn http_4_a_server_is_only_for_tokens_with_its_scope() {
    let nowhere = json!({"command": "/nowhere/server"});
    let server = Server::start("", &json!({"fixture": nowhere, "other": nowhere}));
    let list = |path: &str, token: &str| {
        let answer = server.single(path, token, "tools/list", json!({}));
        (answer.status, answer.body)
    };
    let other = server.make_token("other", "server:other");
    let compact = server.make_token("compact", "toolset:compact");
    for (path, token, status) in [
        (PATH, &other, 404),
        ("/mcp/server/nothing", &other, 404),
        ("/mcp/server/", &server.token, 404),
        ("/mcp/server/..", &server.token, 404),
        (PATH, &compact, 403),
        // The server does not start.
        (PATH, &server.token, 503),
    ] {
        assert_eq!(list(path, token).0, status, "{path}");
    }
    assert_eq!(list(PATH, &other).1, list("/mcp/server/nothing", &other).1);
}

#[test]
fn a_resource_of_a_server_is_watched_by_its_subscribers() {
    let Some(world) = world() else { return };
    let server = Server::start("", &json!({"fixture": stdio_fixture(&world)}));
    let session = Session::open(&server, &server.token);
    let bearer = format!("Bearer {}", server.token);
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", session.id.as_str()),
    ];
    let mut stream = BufReader::new(server.open("GET", PATH, &headers, ""));
    let uri = json!({"uri": "test://watched-resource"});
    let change = request(6, "tools/call", call("test_watched_change", json!({})));
    // Before the subscription, nobody is told.
    session.post(&change);
    let subscribed = session.post(&request(5, "resources/subscribe", uri.clone())).message();
    assert_eq!(subscribed["result"], json!({}));
    session.post(&change);
    let updated = read_until(&mut stream, |message| message["method"].is_string());
    assert_eq!(updated["method"], "notifications/resources/updated");
    assert_eq!(updated["params"]["uri"], uri["uri"]);
}
