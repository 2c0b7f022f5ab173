//! The REST API, one group after the other.

use std::io::BufReader;

use serde_json::{Value, json};

use super::server::{Server, read_answer, wait_for_process};
use crate::attacks::host::within;
use crate::attacks::recorder::Recorders;
use crate::guide::{blocks, guide};
use crate::support::PATIENCE;

fn bash(code: &str) -> Value {
    json!({"code": code, "language": "bash"})
}

/// Reads lines of a stream until one has this text, and returns them.
fn read_until(stream: &mut impl std::io::BufRead, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        assert_ne!(stream.read_line(&mut all).expect("a line"), 0, "the stream ended: {all}");
    }
    all
}

#[test]
fn executions_are_run_listed_and_read() {
    let server = Server::start("", &json!({}));
    let token = &server.token;
    let typed = json!({"code": "console.log('hello'); return {n: input.n}", "language": "typescript", "input": {"n": 7}, "agent": "robot"});
    let ran = server.api(token, "POST", "/executions", &typed);
    let ran = (ran.status, ran.json());
    assert_eq!(
        (ran.0, &ran.1["status"], &ran.1["value"]),
        (200, &json!("success"), &json!({"n": 7}))
    );
    assert_eq!(
        (&ran.1["output"], &ran.1["tool_calls"]),
        (&json!("hello\n"), &json!(0)),
        "{}",
        ran.1
    );
    let failed = server.api(token, "POST", "/executions", &bash("echo bad >&2; exit 3")).json();
    assert_eq!(
        (&failed["status"], &failed["exit_code"]),
        (&json!("failed"), &json!(3)),
        "{failed}"
    );
    assert_eq!(failed["error"]["code"], "NONZERO_EXIT");
    let list = server.api(token, "GET", "/executions?limit=1", &Value::Null).json();
    assert_eq!((&list["total"], &list["items"][0]["id"]), (&json!(2), &failed["id"]), "{list}");
    let next = list["next"].as_str().expect("a cursor");
    let list =
        server.api(token, "GET", &format!("/executions?cursor={next}&agent=robot"), &Value::Null);
    assert_eq!(list.json()["items"], json!([]), "the filter comes before the page");
    for (query, count) in [
        ("agent=robot", 1),
        ("status=failed", 1),
        ("language=bash", 1),
        ("text=hello", 1),
        ("status=running", 0),
    ] {
        let list = server.api(token, "GET", &format!("/executions?{query}"), &Value::Null).json();
        assert_eq!(list["total"], count, "{query}: {list}");
    }
    let path = format!("/executions/{}", ran.1["id"].as_str().expect("an id"));
    let record = server.api(token, "GET", &path, &Value::Null).json();
    assert_eq!((&record["code"], &record["value"]), (&typed["code"], &json!({"n": 7})), "{record}");
    assert_eq!((&record["principal"], &record["agent"]), (&json!("token:first"), &json!("robot")));
    assert!(record["posture"].as_array().is_some_and(|layers| layers.len() > 3), "{record}");
    // An ended one can still be watched: its output, and its end.
    let events = server.api(token, "GET", &format!("{path}/events"), &Value::Null).events();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["output", "finished"], "{events:?}");
    assert_eq!(server.api(token, "POST", &format!("{path}/cancel"), &Value::Null).status, 409);
}

#[test]
fn http_11_bad_requests_name_the_field_and_leak_nothing() {
    let server = Server::start("", &json!({}));
    let token = &server.token;
    let exec = "exec_00000000000000000000000000000000";
    for (method, path, body, status, code) in [
        ("POST", "/executions", json!({}), 400, "INVALID_ARGS"),
        ("POST", "/executions", json!({"code": "1", "language": "cobol"}), 400, "INVALID_ARGS"),
        (
            "POST",
            "/executions",
            json!({"code": "1", "language": "bash", "x": 1}),
            400,
            "INVALID_ARGS",
        ),
        ("POST", "/executions", json!({"script": "none", "wait": false}), 404, "SCRIPT_NOT_FOUND"),
        ("GET", "/executions?limit=0", Value::Null, 400, "INVALID_ARGS"),
        ("GET", "/executions?limit=1&limit=2", Value::Null, 400, "INVALID_ARGS"),
        ("GET", "/executions?x=1", Value::Null, 400, "INVALID_ARGS"),
        ("GET", "/executions?text=%ff", Value::Null, 400, "INVALID_ARGS"),
        ("GET", "/executions/nothing", Value::Null, 404, "EXECUTION_NOT_FOUND"),
        ("GET", &format!("/executions/{exec}"), Value::Null, 404, "EXECUTION_NOT_FOUND"),
        ("GET", &format!("/executions/{exec}/events"), Value::Null, 404, "EXECUTION_NOT_FOUND"),
        ("GET", "/nothing", Value::Null, 404, "NOT_FOUND"),
        ("DELETE", "/executions", Value::Null, 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/servers/none", Value::Null, 404, "NOT_FOUND"),
        ("GET", "/tools/none/none", Value::Null, 404, "NOT_FOUND"),
        ("DELETE", "/tokens/none", Value::Null, 404, "NOT_FOUND"),
        ("DELETE", "/tokens/first", Value::Null, 409, "FIRST_TOKEN"),
        ("POST", "/tokens", json!({"name": "a b"}), 400, "INVALID_ARGS"),
        ("POST", "/tokens", json!({"name": "a", "scopes": ["x"]}), 400, "INVALID_ARGS"),
        ("GET", "/scripts/none", Value::Null, 404, "SCRIPT_NOT_FOUND"),
        ("GET", "/sessions/none", Value::Null, 404, "SESSION_NOT_FOUND"),
        ("POST", "/approvals/none", json!({"decision": "approve"}), 404, "NOT_FOUND"),
        ("POST", "/approvals/none", json!({"decision": "maybe"}), 400, "INVALID_ARGS"),
    ] {
        let answer = server.api(token, method, path, &body);
        let found = answer.json();
        assert_eq!(
            (answer.status, &found["code"]),
            (status, &json!(code)),
            "{method} {path} {found}"
        );
        assert!(found["message"].as_str().is_some_and(|text| !text.is_empty()), "{found}");
        let home = server.home.path().display().to_string();
        assert!(!answer.body.contains(&home), "{method} {path} {found}");
    }
    let allow = server.api(token, "DELETE", "/executions", &Value::Null);
    assert_eq!(allow.header("allow"), Some("POST, GET"));
}

#[test]
fn output_arrives_while_code_runs_and_closing_the_stream_cancels() {
    let server = Server::start("", &json!({}));
    let token = &server.token;
    let marker = "57721.566";
    let mut body = bash(&format!("echo begun; sleep {marker}"));
    body["stream"] = true.into();
    let mut stream = BufReader::new(server.open_api(token, "POST", "/executions", &body));
    let head = read_until(&mut stream, "begun");
    assert!(head.contains("event: started"), "{head}");
    wait_for_process(&server, marker, true);
    drop(stream);
    wait_for_process(&server, marker, false);
    body["code"] = "echo one; echo two >&2".into();
    let events = server.api(token, "POST", "/executions", &body).events();
    let (last, finished) = events.last().expect("events");
    assert_eq!((last.as_str(), &finished["status"]), ("finished", &json!("success")), "{events:?}");
    assert_eq!(finished["stderr"], "two\n");
    body["code"] = "".into();
    assert_eq!(server.api(token, "POST", "/executions", &body).status, 400);
}

#[test]
fn a_detached_execution_is_watched_and_cancelled_by_whoever_may() {
    let server = Server::start("", &json!({}));
    let token = &server.token;
    let ann = server.make_token("ann", "");
    let marker = "66743.015";
    let mut body = bash(&format!("echo begun; sleep {marker}"));
    body["wait"] = false.into();
    let started = server.api(&ann, "POST", "/executions", &body);
    let id = started.json()["id"].as_str().expect("an id").to_owned();
    let path = format!("/api/v1/executions/{id}");
    assert_eq!((started.status, started.header("location")), (202, Some(path.as_str())));
    wait_for_process(&server, marker, true);
    let running = server.api(token, "GET", "/executions?status=running", &Value::Null).json();
    assert_eq!(running["items"][0]["id"], id, "{running}");
    let path = format!("/executions/{id}");
    let watch = server.open_api(token, "GET", &format!("{path}/events"), &Value::Null);
    let mut watch = BufReader::new(watch);
    read_until(&mut watch, "begun");
    // Another client of the same execution sees the same.
    let watch2 = server.open_api(&ann, "GET", &format!("{path}/events"), &Value::Null);
    let cancelled = server.api(token, "POST", &format!("{path}/cancel"), &Value::Null);
    assert_eq!((cancelled.status, &cancelled.json()["status"]), (202, &json!("cancelling")));
    assert!(read_until(&mut watch, "event: finished").contains("event: finished"));
    wait_for_process(&server, marker, false);
    let events = read_answer(watch2).events();
    let (name, finished) = events.last().expect("events");
    assert_eq!((name.as_str(), &finished["status"]), ("finished", &json!("cancelled")));
    assert_eq!(server.api(token, "POST", &format!("{path}/cancel"), &Value::Null).status, 409);
}

#[test]
fn http_12_files_are_saved_and_only_pictures_are_shown() {
    let server = Server::start("", &json!({}));
    let token = &server.token;
    let code = "mkdir d; echo '<script>alert(1)</script>' > d/page.html; \
                printf '\\x89PNG\\r\\n\\x1a\\n' > dot.png; echo text > fake.png";
    let ran = server.api(token, "POST", "/executions", &bash(code)).json();
    let base = format!("/executions/{}/artifacts", ran["id"].as_str().expect("an id"));
    let list = server.api(token, "GET", &base, &Value::Null).json();
    let paths: Vec<&Value> =
        list["items"].as_array().expect("files").iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, ["d/page.html", "dot.png", "fake.png"], "{list}");
    for (path, kind, disposition) in [
        ("d/page.html", "application/octet-stream", "attachment; filename*=UTF-8''page.html"),
        ("d%2Fpage.html", "application/octet-stream", "attachment; filename*=UTF-8''page.html"),
        ("dot.png", "image/png", "inline"),
        ("fake.png", "application/octet-stream", "attachment; filename*=UTF-8''fake.png"),
    ] {
        let file = server.api(token, "GET", &format!("{base}/{path}"), &Value::Null);
        assert_eq!((file.status, file.header("content-type")), (200, Some(kind)), "{path}");
        assert_eq!(file.header("content-disposition"), Some(disposition), "{path}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
        let policy = file.header("content-security-policy").expect("a policy");
        assert!(policy.contains("sandbox"), "{policy}");
    }
    for path in ["..%2F..%2Fhttp-token", "../../http-token", "d", "none", "%2Fetc%2Fpasswd", "."] {
        let file = server.api(token, "GET", &format!("{base}/{path}"), &Value::Null);
        assert_eq!(file.status, 404, "{path}");
    }
}

#[test]
fn sessions_and_scripts_keep_what_they_are_given() {
    let server = Server::start("", &json!({}));
    let token = &server.token;
    let opened =
        server.api(token, "POST", "/sessions", &json!({"language": "python", "name": "mine"}));
    assert_eq!(opened.status, 201, "{opened:?}");
    let path = format!("/sessions/{}", opened.json()["id"].as_str().expect("an id"));
    let send =
        |code: &str| server.api(token, "POST", &format!("{path}/send"), &json!({"code": code}));
    assert_eq!(send("x = 41").json()["status"], "success");
    assert_eq!(send("x + 1").json()["value"], 42);
    let seen = server.api(token, "GET", &path, &Value::Null).json();
    assert_eq!((&seen["executions"], &seen["state"]), (&json!(2), &json!("open")), "{seen}");
    let closed = server.api(token, "DELETE", &path, &Value::Null);
    assert_eq!((closed.status, &closed.json()["executions"]), (200, &json!(2)));
    assert_eq!(server.api(token, "DELETE", &path, &Value::Null).status, 404);
    assert_eq!(server.api(token, "GET", &path, &Value::Null).json()["state"], "ended");
    let all = server.api(token, "GET", "/sessions?state=all", &Value::Null).json();
    assert_eq!(all["items"].as_array().map(Vec::len), Some(1), "{all}");
    let script = json!({"name": "twice", "description": "doubles", "language": "typescript", "code": "return input.n * 2"});
    let saved = server.api(token, "POST", "/scripts", &script);
    assert_eq!((saved.status, &saved.json()["version"]), (201, &json!(1)), "{saved:?}");
    assert!(!saved.body.contains("path"), "{saved:?}");
    let ran = server.api(token, "POST", "/scripts/twice/run", &json!({"input": {"n": 4}})).json();
    assert_eq!(ran["value"], 8, "{ran}");
    let found = server.api(token, "GET", "/scripts?query=doubles", &Value::Null).json();
    assert_eq!(found["items"][0]["name"], "twice", "{found}");
    let shown = server.api(token, "GET", "/scripts/twice", &Value::Null).json();
    assert_eq!(shown["code"], script["code"]);
    let versions = server.api(token, "GET", "/scripts/twice/versions", &Value::Null).json();
    assert_eq!(versions["items"][0]["is_current"], true, "{versions}");
    assert_eq!(server.api(token, "DELETE", "/scripts/twice", &Value::Null).status, 200);
    assert_eq!(server.api(token, "GET", "/scripts/twice", &Value::Null).status, 404);
}

#[test]
fn http_14_tokens_make_tokens_only_if_nothing_narrows_them() {
    let server = Server::start("", &json!({}));
    let token = &server.token;
    let made = server.api(token, "POST", "/tokens", &json!({"name": "ci", "scopes": ["read"]}));
    assert_eq!(made.status, 201, "{made:?}");
    let reader = made.json()["token"].as_str().expect("a token").to_owned();
    assert_eq!(server.api(&reader, "GET", "/executions", &Value::Null).status, 200);
    let refused = server.api(&reader, "POST", "/executions", &bash("true"));
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("SCOPE_MISSING")));
    let narrow = server.make_token("narrow", "everyone,write,server:mail");
    let wide = json!({"name": "wide", "scopes": ["everyone"]});
    assert_eq!(server.api(&narrow, "POST", "/tokens", &wide).status, 403);
    assert_eq!(server.api(&narrow, "DELETE", "/tokens/ci", &Value::Null).status, 403);
    assert_eq!(server.api(token, "POST", "/tokens", &json!({"name": "ci"})).status, 409);
    let list = server.api(token, "GET", "/tokens", &Value::Null);
    assert!(!list.body.contains(&reader), "{list:?}");
    assert_eq!(server.api(token, "DELETE", "/tokens/ci", &Value::Null).status, 200);
    assert_eq!(server.api(&reader, "GET", "/executions", &Value::Null).status, 401);
    let settings = server.api(token, "GET", "/settings", &Value::Null).json();
    assert_eq!(settings["http"]["connections_per_peer"], 64, "{settings}");
}

#[test]
fn http_15_servers_tools_and_approvals_work_from_outside() {
    let folder = tempfile::tempdir().expect("a directory");
    let recorders = Recorders::new(folder.path());
    let tool = |description: &str| json!({"tools": [{"name": "get", "description": description, "inputSchema": {"type": "object"}}]});
    let hub = recorders.entry("hub", &tool("Gets it."));
    let server = Server::start("", &json!({"hub": hub}));
    let token = &server.token;
    let get = |path: &str| server.api(token, "GET", path, &Value::Null).json();
    assert!(within(PATIENCE, || get("/tools?server=hub")["items"][0]["name"] == "hub.get"));
    assert_eq!(get("/tools/search?q=gets&limit=1")["items"][0]["tool"], "get");
    assert_eq!(get("/tools/hub/get")["input_schema"], json!({"type": "object"}));
    let called = server.api(token, "POST", "/tools/hub/get/call", &json!({"arguments": {}}));
    assert_eq!(called.status, 200, "{called:?}");
    let shown = get("/servers/hub");
    assert_eq!((&shown["state"], &shown["calls"]), (&json!("ready"), &json!(1)), "{shown}");
    assert!(shown["origin"]["file"].as_str().is_some_and(|file| file.ends_with("servers.json")));
    let mut events = BufReader::new(server.open_api(token, "GET", "/events", &Value::Null));
    read_until(&mut events, "event: ready");
    // A changed definition is held until it is approved, exactly as it was shown.
    let _ = recorders.entry("hub", &tool("Gets it all."));
    let restart = server.api(token, "POST", "/servers/hub/restart", &Value::Null);
    assert_eq!(restart.status, 202, "{restart:?}");
    assert!(within(PATIENCE, || get("/approvals")["items"][0].is_object()));
    let waiting = get("/approvals")["items"][0].clone();
    assert_eq!(
        (&waiting["tool"], &waiting["is_change"]),
        (&json!("get"), &json!(true)),
        "{waiting}"
    );
    assert!(waiting["difference"].to_string().contains("Gets it all."), "{waiting}");
    read_until(&mut events, "event: approval.changed");
    let held = server.api(token, "POST", "/tools/hub/get/call", &json!({"arguments": {}}));
    assert_eq!((held.status, &held.json()["code"]), (409, &json!("TOOL_QUARANTINED")));
    let path = format!("/approvals/{}", waiting["id"].as_str().expect("an id"));
    assert_eq!(server.api(token, "POST", &path, &json!({"decision": "deny"})).status, 200);
    assert_eq!(get("/approvals")["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.api(token, "POST", &path, &json!({"decision": "approve"})).status, 200);
    assert_eq!(get("/approvals")["items"], json!([]));
    let called = server.api(token, "POST", "/tools/hub/get/call", &json!({"arguments": {}}));
    assert_eq!(called.status, 200, "{called:?}");
    let stats = get("/stats");
    assert!(stats["tokens"]["all_tools"].as_u64().is_some_and(|tokens| tokens > 0), "{stats}");
    assert_eq!(get("/health")["healthy"], true);
}

#[test]
fn the_api_is_documented_for_people() {
    let server = Server::start("", &json!({}));
    let page = server.ask("GET", "/api", &[], "");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(
        page.header("content-security-policy")
            .is_some_and(|policy| policy.contains("default-src 'none'"))
    );
    assert!(
        page.body.contains("/executions/{id}/cancel") && !page.body.contains("src="),
        "{page:?}"
    );
    let document = server.api(&server.token, "GET", "/openapi.json", &Value::Null).json();
    assert_eq!(document["openapi"], "3.1.0");
}

/// The examples of the guide, with the address and the token of this server.
#[test]
fn the_examples_of_the_guide_run() {
    let server = Server::start("", &json!({}));
    let examples = blocks(guide("http.md")).into_iter().filter(|block| block.kind == "sh");
    let examples: Vec<String> =
        examples.map(|block| block.text.replace("127.0.0.1:7777", &server.authority)).collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &example]).env("CODEXEC_TOKEN", &server.token);
        let output = shell.output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !said.is_empty(), "{example}: {said}");
    }
}

#[test]
fn http_13_scripts_of_others_are_not_seen_run_or_replaced() {
    let server = Server::start("", &json!({}));
    let (token, ann) = (&server.token, server.make_token("ann", ""));
    let script = json!({"name": "wombat", "description": "d", "language": "bash", "code": "true"});
    assert_eq!(server.api(token, "POST", "/scripts", &script).status, 201);
    let list = server.api(&ann, "GET", "/scripts", &Value::Null).json();
    assert_eq!(list["items"], json!([]));
    let taken = server.api(&ann, "POST", "/scripts", &script);
    assert_eq!((taken.status, &taken.json()["code"]), (409, &json!("SCRIPT_NAME_TAKEN")));
    // A misspelt name does not tell what others have.
    let near = server.api(&ann, "GET", "/scripts/wombay", &Value::Null);
    assert!(near.status == 404 && !near.body.contains("wombat"), "{near:?}");
    for (path, body) in
        [("/executions", json!({"script": "wombat"})), ("/scripts/wombat/run", json!({}))]
    {
        let ran = server.api(&ann, "POST", path, &body);
        assert_eq!((ran.status, &ran.json()["code"]), (404, &json!("SCRIPT_NOT_FOUND")));
    }
    // Nor over MCP, where the same functions are tools.
    let call = json!({"name": "get_script", "arguments": {"name": "wombat"}});
    let got = server.single("/mcp/codexec", &ann, "tools/call", call);
    assert!(got.body.contains("SCRIPT_NOT_FOUND"), "{got:?}");
    assert_eq!(server.api(token, "GET", "/scripts/wombat", &Value::Null).status, 200);
}
