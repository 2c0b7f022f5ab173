//! The bridge of code-executor, as programs outside the sandbox use it.

use serde_json::{Value, json};

use super::server::{Answer, Server, read_answer};
use crate::attacks::host::within;
use crate::attacks::recorder::Recorders;
use crate::support::PATIENCE;

fn call(server: &Server, token: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    server.ask("POST", "/", &headers, &body.to_string())
}

fn find(server: &Server, token: &str, query: &str) -> Answer {
    server.ask("GET", &format!("/mcp/tools{query}"), &[("X-API-Key", token)], "")
}

#[test]
fn programs_find_and_call_tools_with_code_executors_shapes() {
    let folder = tempfile::tempdir().expect("a directory");
    let recorders = Recorders::new(folder.path());
    let server = Server::start("", &json!({"hub": recorders.entry("hub", &json!({}))}));
    let token = &server.token;
    let has_tools = || find(&server, token, "").json()["tools"].as_array().map(Vec::len) == Some(4);
    assert!(within(PATIENCE, has_tools), "{:?}", find(&server, token, ""));
    let found = find(&server, token, "?q=echo+nothing").json();
    assert_eq!(found["tools"][0]["name"], "mcp__hub__echo", "{found}");
    assert_eq!(found["tools"][0]["parameters"], json!({"type": "object"}));
    let named = json!({"toolName": "mcp__hub__echo", "params": {"text": "hi"}});
    let called = call(&server, token, &named);
    assert_eq!(called.status, 200, "{called:?}");
    assert!(called.json().get("result").is_some(), "{called:?}");
    let reader = server.make_token("reader", "read");
    let other = server.make_token("other", "server:mail");
    for (answer, status) in [
        (call(&server, token, &json!({"params": {}})), 400),
        (call(&server, token, &json!({"toolName": "mcp__hub__echo", "params": 1})), 400),
        (find(&server, token, "?q=a%3Cb"), 400),
        (find(&server, token, "?q=a&x=1"), 400),
        (call(&server, "wrong", &named), 401),
        (find(&server, "wrong", ""), 401),
        (call(&server, &reader, &named), 403),
        (call(&server, &other, &named), 403),
        (call(&server, token, &json!({"toolName": "mcp__hub__none", "params": {}})), 404),
        (server.ask("DELETE", "/", &[("X-API-Key", token)], ""), 404),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        let body = answer.json();
        assert!(body["error"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    }
    let unknown = call(&server, "wrong", &named);
    assert_eq!(unknown.header("www-authenticate"), Some("Bearer"));
    let refused = call(&server, &other, &named).json();
    assert!(refused["suggestion"].is_string() && refused["allowedTools"].is_array(), "{refused}");
    let slow = server.make_token("slow", "limit:requests-per-minute=1");
    find(&server, &slow, "");
    let limited = find(&server, &slow, "");
    assert_eq!((limited.status, &limited.json()["window"]), (429, &json!("60s")), "{limited:?}");
    assert!(limited.header("retry-after").is_some());
}

#[test]
fn a_full_queue_and_an_open_circuit_say_when_to_try_again() {
    let folder = tempfile::tempdir().expect("a directory");
    let recorders = Recorders::new(folder.path());
    let dead = recorders.entry("dead", &json!({"on": {"tools/call": [{"do": "die"}]}}));
    let server = Server::start("", &json!({"dead": dead}));
    let named = json!({"toolName": "mcp__dead__echo", "params": {}});
    let is_open = || call(&server, &server.token, &named).status == 503;
    assert!(within(PATIENCE, is_open), "{:?}", call(&server, &server.token, &named));
    let refused = call(&server, &server.token, &named);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("30")), "{refused:?}");
    assert_eq!(refused.json()["retryAfter"], 30);
}

#[test]
fn a_queue_that_is_full_or_does_not_move_says_when_to_try_again() {
    let folder = tempfile::tempdir().expect("a directory");
    let recorders = Recorders::new(folder.path());
    let settings = "[gateway]\nmax-concurrency = 1\nqueue = 1\nqueue-wait-ms = 2000\n";
    let server = Server::start(settings, &json!({"hub": recorders.entry("hub", &json!({}))}));
    let named = json!({"toolName": "mcp__hub__slow", "params": {"ms": 5000}});
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let open = || server.open("POST", "/", &headers, &named.to_string());
    let running = open();
    assert!(within(PATIENCE, || recorders.calls("hub", Some("slow")).len() == 1));
    let queued = open();
    let state = || server.api(&server.token, "GET", "/servers/hub", &Value::Null).json();
    assert!(within(PATIENCE, || state()["waiting"] == 1), "{}", state());
    let full = call(&server, &server.token, &named);
    assert_eq!((full.status, full.header("retry-after")), (503, Some("60")), "{full:?}");
    let late = read_answer(queued);
    assert_eq!((late.status, late.header("retry-after")), (503, Some("30")), "{late:?}");
    assert_eq!(read_answer(running).json(), json!({"result": "at last"}));
}
