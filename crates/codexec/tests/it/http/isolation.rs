//! Two tokens at once, through every route of the OpenAPI document: each sees only its own, and the
//! first token sees all. A route that this test does not know fails it.

use std::io::BufReader;

use serde_json::{Value, json};

use super::server::{Server, wait_for_process};

/// A word in everything that ann owns.
const SECRET: &str = "quokka";

/// What a token must get that does not own what the path names.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stranger {
    /// A list, without anything of the owner's; the owner and the first token find it there.
    SeesNothing,
    /// 404, as if it did not exist; the owner does not get that.
    FindsNothing,
    /// 403, whoever asks without the scope.
    IsRefused,
    /// The answer is the same for everybody, or has nothing of anybody.
    MayDoIt,
}

/// What ann has.
struct Belongings {
    execution: String,
    running: String,
    session: String,
}

fn own_something(server: &Server, ann: &str) -> Belongings {
    let id = |value: Value| value["id"].as_str().expect("an id").to_owned();
    let code = format!("echo {SECRET}; echo {SECRET} > {SECRET}.txt");
    let ran = json!({"code": code, "language": "bash", "agent": SECRET});
    let execution = id(server.api(ann, "POST", "/executions", &ran).json());
    let sleep = json!({"code": format!("echo {SECRET}; sleep 12020.569"), "language": "bash", "wait": false});
    let running = id(server.api(ann, "POST", "/executions", &sleep).json());
    wait_for_process(server, "12020.569", true);
    let opened = json!({"language": "bash", "name": SECRET});
    let session = id(server.api(ann, "POST", "/sessions", &opened).json());
    let script = json!({"name": SECRET, "description": SECRET, "language": "bash", "code": format!("echo {SECRET}")});
    assert_eq!(server.api(ann, "POST", "/scripts", &script).status, 201);
    Belongings { execution, running, session }
}

/// Returns a request to the operation for what ann owns, and what a stranger must get.
fn plan(operation: &str, ann: &Belongings) -> (String, Value, Stranger) {
    use Stranger::{FindsNothing, IsRefused, MayDoIt, SeesNothing};
    let Belongings { execution, running, session } = ann;
    let get = |path: String, stranger| (path, Value::Null, stranger);
    let post = |path: String, body, stranger| (path, body, stranger);
    let echo = || json!({"code": "echo fine", "language": "bash"});
    match operation {
        "start_execution" => post("/executions".into(), echo(), MayDoIt),
        "list_executions" => get("/executions".into(), SeesNothing),
        "get_execution" => get(format!("/executions/{execution}"), FindsNothing),
        "watch_execution" => get(format!("/executions/{execution}/events"), FindsNothing),
        "cancel_execution" => {
            post(format!("/executions/{running}/cancel"), Value::Null, FindsNothing)
        }
        "list_artifacts" => get(format!("/executions/{execution}/artifacts"), FindsNothing),
        "get_artifact" => {
            get(format!("/executions/{execution}/artifacts/{SECRET}.txt"), FindsNothing)
        }
        "list_sessions" => get("/sessions?state=all".into(), SeesNothing),
        "open_session" => post("/sessions".into(), json!({"language": "bash"}), MayDoIt),
        "get_session" => get(format!("/sessions/{session}"), FindsNothing),
        "send_to_session" => {
            post(format!("/sessions/{session}/send"), json!({"code": "echo 1"}), FindsNothing)
        }
        "close_session" => get(format!("/sessions/{session}"), FindsNothing),
        "list_scripts" => get("/scripts".into(), SeesNothing),
        "save_script" => post(
            "/scripts".into(),
            json!({"name": "other", "description": "", "language": "bash", "code": "true"}),
            MayDoIt,
        ),
        "get_script" => get(format!("/scripts/{SECRET}"), FindsNothing),
        "list_script_versions" => get(format!("/scripts/{SECRET}/versions"), FindsNothing),
        "run_script" => post(format!("/scripts/{SECRET}/run"), json!({}), FindsNothing),
        "delete_script" => get(format!("/scripts/{SECRET}"), FindsNothing),
        "list_packages" => get("/packages".into(), MayDoIt),
        "install_package" => {
            post("/packages".into(), json!({"package": "-", "language": "python"}), IsRefused)
        }
        "remove_package" => get("/packages/python/none".into(), IsRefused),
        "list_servers" => get("/servers".into(), MayDoIt),
        "get_server" => get("/servers/mail".into(), MayDoIt),
        "restart_server" => post("/servers/mail/restart".into(), Value::Null, IsRefused),
        "approve_server" => post("/servers/mail/approve".into(), Value::Null, IsRefused),
        "list_approvals" => get("/approvals".into(), IsRefused),
        "decide_approval" => post("/approvals/none".into(), json!({"decision": "deny"}), IsRefused),
        "list_tools" => get("/tools".into(), MayDoIt),
        "search_tools" => get(format!("/tools/search?q={SECRET}"), MayDoIt),
        "get_tool" => get("/tools/mail/none".into(), MayDoIt),
        "call_tool" => post("/tools/mail/none/call".into(), json!({}), MayDoIt),
        "search_logs" => get("/logs".into(), SeesNothing),
        "get_log" => get(format!("/logs/{execution}"), FindsNothing),
        "list_tokens" => get("/tokens".into(), IsRefused),
        "create_token" => post("/tokens".into(), json!({"name": "eve"}), IsRefused),
        "revoke_token" => get("/tokens/nobody".into(), IsRefused),
        "get_settings" => get("/settings".into(), IsRefused),
        "get_health" => get("/health".into(), MayDoIt),
        "get_stats" => get("/stats".into(), MayDoIt),
        // A stream without an end; see `events_are_only_of_ones_own`.
        "watch_events" => get(String::new(), MayDoIt),
        "mcpproxy_exec" => post("/code/exec".into(), json!({"code": "1"}), MayDoIt),
        "mcpproxy_scripts" => get("/code/scripts".into(), SeesNothing),
        "get_openapi" => get("/openapi.json".into(), MayDoIt),
        other => panic!("{other}: say here what a stranger may see of this route"),
    }
}

/// Returns all operations of the document: id and method.
fn list_operations(server: &Server) -> Vec<(String, String)> {
    let document = server.api(&server.token, "GET", "/openapi.json", &Value::Null).json();
    let mut operations = Vec::new();
    for methods in document["paths"].as_object().expect("paths").values() {
        for (method, operation) in methods.as_object().expect("methods") {
            let id = operation["operationId"].as_str().expect("an id");
            operations.push((id.to_owned(), method.to_ascii_uppercase()));
        }
    }
    operations
}

#[test]
fn http_9_a_token_sees_only_its_own_through_every_route() {
    let server = Server::start("", &json!({"mail": {"command": "/nowhere/mail"}}));
    let (ann, bob) = (server.make_token("ann", ""), server.make_token("bob", ""));
    let owned = own_something(&server, &ann);
    // The local user's runs are the first token's to see, and nobody else's.
    let local = server.run(&["exec", "--language", "bash", &format!("echo {SECRET} local")]);
    assert!(local.status.success(), "{local:?}");
    let ids = [&owned.execution, &owned.running, &owned.session];
    let has_secret =
        |text: &str| text.contains(SECRET) || ids.iter().any(|id| text.contains(id.as_str()));
    let operations = list_operations(&server);
    assert!(operations.len() > 40, "{operations:?}");
    let mut later = Vec::new();
    for (id, method) in operations {
        let (path, body, stranger) = plan(&id, &owned);
        if path.is_empty() {
            continue;
        }
        let answer = server.api(&bob, &method, &path, &body);
        let status = answer.status;
        assert!(!has_secret(&without_echo(&answer.body, &path)), "{id}: {answer:?}");
        match stranger {
            Stranger::SeesNothing => assert_eq!(status, 200, "{id}: {answer:?}"),
            Stranger::FindsNothing => assert_eq!(status, 404, "{id}: {answer:?}"),
            Stranger::IsRefused => assert_eq!(status, 403, "{id}: {answer:?}"),
            Stranger::MayDoIt => assert!(status < 500 && status != 401, "{id}: {answer:?}"),
        }
        later.push((id, method, path, body, stranger));
    }
    let metrics = server.ask("GET", "/metrics", &[("X-API-Key", &bob)], "").body;
    assert!(!metrics.contains("ann") && !has_secret(&metrics), "{metrics}");
    let stats = server.api(&bob, "GET", "/stats", &Value::Null).json();
    let total = stats["executions"]["total"].as_u64().expect("a number");
    assert!(total <= 2, "only what bob ran: {stats}");
    // What bob tried has changed nothing, and ann and the first token find everything.
    wait_for_process(&server, "12020.569", true);
    let removes = |method: &str| method == "DELETE";
    later.sort_by_key(|(id, method, ..)| (removes(method), id == "cancel_execution"));
    for (id, method, path, body, stranger) in later {
        let check = |token: &str| {
            let answer = server.api(token, &method, &path, &body);
            match stranger {
                Stranger::SeesNothing => assert!(has_secret(&answer.body), "{id}: {answer:?}"),
                Stranger::FindsNothing => assert!(answer.status < 300, "{id}: {answer:?}"),
                Stranger::IsRefused => assert_ne!(answer.status, 403, "{id}: {answer:?}"),
                Stranger::MayDoIt => {}
            }
        };
        match stranger {
            // The second time, it is gone; sending to a session is for its owner.
            Stranger::FindsNothing if removes(&method) || id == "cancel_execution" => {
                check(&server.token)
            }
            Stranger::FindsNothing if id == "send_to_session" => check(&ann),
            Stranger::FindsNothing | Stranger::SeesNothing => {
                check(&ann);
                check(&server.token);
            }
            Stranger::IsRefused => check(&server.token),
            Stranger::MayDoIt => {}
        }
    }
    let all = server.api(&server.token, "GET", "/executions", &Value::Null).json();
    let principals: Vec<&Value> =
        all["items"].as_array().expect("items").iter().map(|one| &one["principal"]).collect();
    assert!(principals.contains(&&json!("local")), "{all}");
    let own = server.api(&ann, "GET", "/executions", &Value::Null).json();
    let items = own["items"].as_array().expect("items");
    assert!(items.iter().all(|one| one["principal"] == "token:ann"), "{own}");
}

/// Removes what the request itself said, which an error may repeat.
fn without_echo(body: &str, path: &str) -> String {
    let said = path.split(['/', '=']).filter(|part| !part.is_empty());
    said.fold(body.to_owned(), |body, part| body.replace(part, ""))
}

#[test]
fn http_9_events_are_only_of_ones_own() {
    let server = Server::start("", &json!({}));
    let (ann, bob) = (server.make_token("ann", ""), server.make_token("bob", ""));
    let open = |token: &str| {
        let mut stream = BufReader::new(server.open_api(token, "GET", "/events", &Value::Null));
        read_to(&mut stream, "event: ready");
        stream
    };
    let (mut bobs, mut all) = (open(&bob), open(&server.token));
    let run = |token: &str| {
        let body = json!({"code": "true", "language": "bash"});
        let ran = server.api(token, "POST", "/executions", &body).json();
        ran["id"].as_str().expect("an id").to_owned()
    };
    let (anns, own) = (run(&ann), run(&bob));
    let seen = read_to(&mut bobs, "event: execution.finished") + &read_to(&mut bobs, "data: ");
    assert!(seen.contains(&own) && !seen.contains(&anns), "{seen}");
    let seen = read_to(&mut all, &own);
    assert!(seen.contains(&anns), "{seen}");
}

/// Reads lines of a stream until one has this text.
fn read_to(stream: &mut impl std::io::BufRead, text: &str) -> String {
    let mut all = String::new();
    while !all.contains(text) {
        assert_ne!(stream.read_line(&mut all).expect("a line"), 0, "the stream ended: {all}");
    }
    all
}
