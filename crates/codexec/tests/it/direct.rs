//! The toolset `direct`: what goes through it comes out as it was, in both eras.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Client, PATIENCE, command};
use crate::world::World;

const UPSTREAM: &str = include_str!("direct/upstream.py");

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

use Era::{Legacy, Modern};

/// A client of one era that can be asked what `capabilities` say.
pub(crate) struct Speaker {
    pub(crate) client: Client,
    era: Era,
    capabilities: Value,
}

impl Speaker {
    pub(crate) fn start(servers: &Value, era: Era, capabilities: Value, toolset: &str) -> Speaker {
        let mut client = Client::raw(servers, |command| {
            command.args(["--toolset", toolset]);
        });
        if era == Legacy {
            let hello = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": {"name": "it", "version": "0"},
            });
            client.request("initialize", &hello);
            client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        Speaker { client, era, capabilities }
    }

    fn scripted(era: Era, capabilities: Value) -> Speaker {
        Speaker::start(&json!({"s": scripted()}), era, capabilities, "direct")
    }

    fn with_meta(&self, mut params: Value, token: Option<&str>) -> Value {
        let mut meta = json!({});
        if self.era == Modern {
            meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "0"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        if let Some(token) = token {
            meta["progressToken"] = json!(token);
        }
        params["_meta"] = meta;
        params
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        let params = self.with_meta(params, None);
        self.client.send(method, &params)
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.client.wait(id)
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(reply["error"].is_null(), "{reply}");
        reply["result"].clone()
    }

    fn names(&mut self) -> Vec<String> {
        let list = self.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// The next message with this method.
    fn next(&mut self, method: &str) -> Value {
        let mut others = Vec::new();
        loop {
            let message = self.client.next_message();
            if message["method"] == method {
                self.client.others.extend(others);
                return message;
            }
            others.push(message);
        }
    }

    /// What a call gives whose question is answered like this, and the question.
    fn asked(&mut self, tool: &str, arguments: &Value, answer: &Value) -> (Value, Value) {
        let params = json!({"name": tool, "arguments": arguments});
        let id = self.send("tools/call", params.clone());
        if self.era == Legacy {
            let question = self.next("elicitation/create");
            let answered = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
            self.client.write(&answered);
            return (self.client.wait(id)["result"].clone(), question["params"].clone());
        }
        let asked = self.client.wait(id)["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let requests = asked["inputRequests"].as_object().expect("questions");
        let (key, question) = requests.iter().next().expect("one question");
        assert_eq!(question["method"], "elicitation/create");
        let mut again = params;
        again["inputResponses"] = json!({key: answer});
        again["requestState"] = asked["requestState"].clone();
        (self.request("tools/call", again)["result"].clone(), question["params"].clone())
    }
}

pub(crate) fn scripted() -> Value {
    json!({"command": "python3", "args": ["-S", "-c", UPSTREAM]})
}

fn can_ask() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

/// What a server says to whoever speaks to it without us between.
struct Bare {
    child: std::process::Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    next_id: u64,
}

impl Bare {
    fn start(server: &Value) -> Bare {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let args = server["args"].as_array().expect("arguments").iter().map(text);
        let mut child = Command::new(text(&server["command"]))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut bare = Bare { child, lines, next_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": can_ask(),
            "clientInfo": {"name": "codexec", "version": "0"},
        });
        bare.request("initialize", &hello);
        bare.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        bare
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().expect("piped"), "{message}").expect("written");
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.lines.next().expect("an answer").expect("UTF-8");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id && message["method"].is_null() {
                return message["result"].clone();
            }
        }
    }

    /// All tools, by pages.
    fn tools(&mut self) -> Vec<Value> {
        let list = self.request("tools/list", &json!({}));
        list["tools"].as_array().expect("tools").clone()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Real servers' tools and results, compared with what the servers say themselves.
fn check_real(era: Era) {
    let Some(world) = World::find() else { return };
    let mut us = Speaker::start(&world.servers, era, can_ask(), "direct");
    // A call waits for its server as long as it takes; a list does not.
    us.call("everything__echo", json!({"message": ""}));
    us.call("filesystem__list_allowed_directories", json!({}));
    let list = us.request("tools/list", json!({}))["result"].clone();
    let ours = list["tools"].as_array().expect("tools").clone();
    assert_eq!(list.get("resultType").is_some(), era == Modern, "{list}");
    for server in ["everything", "filesystem"] {
        let mut bare = Bare::start(&world.servers[server]);
        let prefix = format!("{server}__");
        let theirs: Vec<Value> = bare.tools();
        let ours: Vec<Value> = ours
            .iter()
            .filter(|tool| tool["name"].as_str().expect("a name").starts_with(&prefix))
            .cloned()
            .collect();
        let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
        let expected: Vec<String> =
            theirs.iter().map(|tool| format!("{prefix}{}", name(tool))).collect();
        let named: Vec<String> = ours.iter().map(name).collect();
        assert_eq!(named, expected);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            for (key, value) in theirs.as_object().expect("an object") {
                if !["name", "execution"].contains(&key.as_str()) {
                    assert_eq!(&ours[key], value, "{} {key}", ours["name"]);
                }
            }
        }
    }
    let mut bare = Bare::start(&world.servers["everything"]);
    for (tool, arguments) in [
        ("echo", json!({"message": "x"})),
        ("get-tiny-image", json!({})),
        ("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        ("get-structured-content", json!({"location": "New York"})),
        ("get-resource-links", json!({"count": 3})),
        ("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})),
    ] {
        let mut ours = us.call(&format!("everything__{tool}"), arguments.clone());
        let marked = ours.as_object_mut().expect("an object").remove("resultType");
        assert_eq!(marked.is_some(), era == Modern);
        let theirs = bare.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        if tool == "get-resource-reference" {
            // It tells the time.
            assert_eq!(ours["content"][1]["type"], "resource");
            continue;
        }
        assert_eq!(ours, theirs, "{tool}");
    }
    let call = json!({"name": "everything__trigger-long-running-operation",
        "arguments": {"duration": 0.2, "steps": 2}});
    let call = us.with_meta(call, Some("t"));
    let id = us.client.send("tools/call", &call);
    let progress = us.next("notifications/progress")["params"].clone();
    assert_eq!((&progress["progressToken"], &progress["total"]), (&json!("t"), &json!(2.0)));
    assert!(us.client.wait(id)["result"]["content"][0]["text"].is_string());

    let accept = json!({"action": "accept", "content": {"name": "Ada", "check": true}});
    let (result, question) =
        us.asked("everything__trigger-elicitation-request", &json!({}), &accept);
    assert_eq!(question["requestedSchema"]["required"], json!(["name"]), "{question}");
    assert!(result["content"].to_string().contains("Ada"), "{result}");
}

#[test]
fn real_tools_and_results_go_through_as_they_are_with_a_handshake() {
    check_real(Legacy);
}

#[test]
fn real_tools_and_results_go_through_as_they_are_without_a_handshake() {
    check_real(Modern);
}

#[test]
fn a_result_is_whole_whatever_is_in_it() {
    for era in [Legacy, Modern] {
        let mut us = Speaker::scripted(era, json!({}));
        let mut result = json!({
            "content": [
                {"type": "hologram", "beam": 1},
                {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "later": true},
                {"type": "resource", "resource": {"uri": "a:b", "blob": "AA==", "_meta": {"x": 1}}},
            ],
            "structuredContent": [1, null, {"a": 1.5}],
            "isError": true,
            "_meta": {"vendor/x": {"y": []}},
            "unknown": "kept",
        });
        let ours = us.call("s__give", json!({"result": result}));
        if era == Modern {
            result["resultType"] = json!("complete");
        }
        assert_eq!(ours, result, "{era:?}");
    }
}

#[test]
fn what_cannot_be_called_says_why() {
    let mut us = Speaker::scripted(Legacy, json!({}));
    let check = |us: &mut Speaker, tool: &str, arguments: Value, expected: &str| {
        let result = us.call(tool, arguments);
        assert_eq!(result["content"][0]["text"], expected);
        assert_eq!(result["isError"], true);
    };
    let wrong = "INVALID_ARGS: s.strict: `n` is missing; parameters: n (required)";
    check(&mut us, "s__strict", json!({}), wrong);
    let long = json!({"result": {"content": [], "x": "y".repeat(7 << 20)}});
    let reply = us.request("tools/call", json!({"name": "s__give", "arguments": long}));
    assert_eq!(reply["result"]["x"].as_str().map(str::len), Some(7 << 20));
    for (tool, advice) in [("nothing", "s__nothing"), ("execute_code", "execute_code")] {
        let name = if tool == "nothing" { "s__nothing" } else { tool };
        let reply = us.request("tools/call", json!({"name": name, "arguments": {}}));
        let sorry = format!("there is no tool {advice:?} here; tools/list has all there are");
        assert_eq!(reply["error"], json!({"code": -32_602, "message": sorry}));
    }
}

#[test]
fn what_the_settings_do_not_allow_is_neither_listed_nor_called() {
    let mut us = Speaker::scripted(Legacy, json!({}));
    let all = us.names();
    let expected = [
        "s__give",
        "s__steps",
        "s__ask",
        "s__rounds",
        "s__hang",
        "s__cancelled",
        "s__change",
        "s__dot_ted",
        "s__strict",
    ];
    assert_eq!(all, expected);
    assert_eq!(us.call("s__dot_ted", json!({}))["structuredContent"], "dot.ted");
    assert_eq!(us.call("s__dot.ted", json!({}))["structuredContent"], "dot.ted");

    let home = us.client.home.path().join("narrow.toml");
    std::fs::write(&home, "toolset = ['direct']\n[tools]\nallowed = ['s.give']").expect("written");
    let mut us = Client::with(&json!({"s": scripted()}), |command| {
        command.arg("--config").arg(&home);
    });
    let list = us.request("tools/list", &json!({}));
    assert_eq!(list["result"]["tools"].as_array().map(Vec::len), Some(1), "{list}");
    let denied = us.call("s__strict", &json!({"n": 1})).failed();
    let sorry = "TOOL_NOT_ALLOWED: tool \"s.strict\" may not be called; add it to allowed_tools";
    assert_eq!(denied, sorry);
}

#[test]
fn progress_is_told_under_the_clients_own_token_before_the_result() {
    for era in [Legacy, Modern] {
        let mut us = Speaker::scripted(era, json!({}));
        us.names();
        let call = json!({"name": "s__steps", "arguments": {"n": 5}});
        let call = us.with_meta(call, Some("my token"));
        let id = us.client.send("tools/call", &call);
        let mut steps = Vec::new();
        loop {
            let message = us.client.next_message();
            if message["id"] == id {
                assert_eq!(message["result"]["structuredContent"], "done", "{message}");
                break;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
            steps.push(message["params"].clone());
        }
        let step = |n: u64| {
            json!({"progressToken": "my token", "progress": n as f64, "total": 5.0,
                "message": format!("step {n}")})
        };
        assert_eq!(steps, (0..5).map(step).collect::<Vec<_>>());
    }
}

#[test]
fn a_cancelled_call_is_cancelled_at_its_server() {
    let mut us = Speaker::scripted(Legacy, json!({}));
    us.names();
    let id = us.send("tools/call", json!({"name": "s__hang", "arguments": {}}));
    // Answered behind it: the server has both.
    us.call("s__cancelled", json!({}));
    let cancel = json!({"requestId": id});
    us.client
        .write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}));
    let deadline = std::time::Instant::now() + PATIENCE;
    while us.call("s__cancelled", json!({}))["structuredContent"] != 1 {
        assert!(std::time::Instant::now() < deadline, "the server was not told");
    }
    let health = us.client.others.iter().any(|message| message["id"] == id);
    assert!(!health, "a call that was cancelled has no answer");
}

fn form() -> Value {
    json!({"message": "Your name?", "requestedSchema": {
        "type": "object", "properties": {"name": {"type": "string", "title": "Name"}},
        "required": ["name"]}})
}

/// As a client sees it.
fn seen(mut params: Value) -> Value {
    let object = params.as_object_mut().expect("an object");
    let meta = object.remove("_meta").unwrap_or_default();
    assert_eq!(meta["codexec/server"], "s");
    // Said or left out, it means the same.
    object.remove("mode").inspect(|mode| assert_eq!(mode, "form"));
    params
}

#[test]
fn questions_reach_the_human_and_answers_the_server() {
    for era in [Legacy, Modern] {
        let mut us = Speaker::scripted(era, can_ask());
        us.names();
        let accept = json!({"action": "accept", "content": {"name": "Ada"}});
        let (result, question) = us.asked("s__ask", &json!({"params": form()}), &accept);
        assert_eq!(result["structuredContent"], accept, "{era:?} {result}");
        assert_eq!(seen(question), form());
        // A server that asks by its result, and is called again.
        let (result, question) = us.asked("s__rounds", &json!({"params": form()}), &accept);
        let expected = json!({"answers": {"who": accept}, "state": "s1"});
        assert_eq!(result["structuredContent"], expected, "{era:?} {result}");
        assert_eq!(seen(question), form());
        let decline = json!({"action": "decline"});
        let (result, _) = us.asked("s__ask", &json!({"params": form()}), &decline);
        assert_eq!(result["structuredContent"], decline);
        let url = json!({"mode": "url", "message": "Log in", "url": "https://a.example/",
            "elicitationId": "e1"});
        let (_, question) = us.asked("s__ask", &json!({"params": url}), &decline);
        assert_eq!(question["url"], "https://a.example/");
    }
}

#[test]
fn who_cannot_be_asked_declines() {
    for (era, capabilities) in
        [(Legacy, json!({})), (Modern, json!({})), (Legacy, json!({"elicitation": {"url": {}}}))]
    {
        let mut us = Speaker::scripted(era, capabilities);
        us.names();
        let result = us.call("s__ask", json!({"params": form()}));
        assert_eq!(result["structuredContent"], json!({"action": "decline"}), "{era:?}");
    }
    let mut us = Speaker::scripted(Legacy, json!({}));
    let result = us.call("s__rounds", json!({"params": form()}));
    let sorry = "UPSTREAM_ERROR: s.rounds: it wants input, and nobody can be asked";
    assert_eq!(result["content"][0]["text"], sorry);
}

#[test]
fn ask_2_an_answer_goes_only_to_the_call_that_asked() {
    let mut us = Speaker::scripted(Modern, can_ask());
    us.names();
    let call = json!({"name": "s__ask", "arguments": {"params": form()}});
    let asked = us.request("tools/call", call.clone())["result"].clone();
    let state = &asked["requestState"];
    let answers = json!({"question": {"action": "accept", "content": {"name": "Eve"}}});
    let check = |us: &mut Speaker, name: &str, arguments: &Value, state: &Value| {
        let params = json!({"name": name, "arguments": arguments, "inputResponses": answers,
            "requestState": state});
        let reply = us.request("tools/call", params);
        assert_eq!(reply["error"]["code"], -32_602, "{reply}");
    };
    check(&mut us, "s__rounds", &call["arguments"], state);
    check(&mut us, "s__ask", &json!({}), state);
    check(&mut us, "s__ask", &call["arguments"], &json!("0".repeat(32)));
    let mut again = call;
    (again["inputResponses"], again["requestState"]) = (answers.clone(), state.clone());
    let result = us.request("tools/call", again.clone())["result"].clone();
    assert_eq!(result["structuredContent"], answers["question"]);
    let twice = us.request("tools/call", again);
    assert_eq!(twice["error"]["code"], -32_602, "{twice}");
}

#[test]
fn code_that_calls_a_tool_has_its_clients_human_behind_it() {
    for era in [Legacy, Modern] {
        let mut us = Speaker::start(&json!({"s": scripted()}), era, can_ask(), "compact");
        let code = "return await tools.s.ask(input);";
        let arguments = json!({"code": code, "input": {"params": form()}});
        let accept = json!({"action": "accept", "content": {"name": "Ada"}});
        let (result, question) = us.asked("execute_code", &arguments, &accept);
        assert_eq!(result["content"][0]["text"], accept.to_string(), "{era:?} {result}");
        assert_eq!(question["message"], "s asks: Your name?");
    }
}

#[test]
fn a_client_hears_when_the_list_is_another() {
    for era in [Legacy, Modern] {
        let mut us = Speaker::scripted(era, json!({}));
        if era == Modern {
            us.send("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
            us.next("notifications/subscriptions/acknowledged");
        }
        assert!(!us.names().contains(&"s__added".to_owned()));
        assert_eq!(us.call("s__change", json!({}))["structuredContent"], "changed");
        us.next("notifications/tools/list_changed");
        assert!(us.names().contains(&"s__added".to_owned()), "{era:?}");
        assert_eq!(us.call("s__added", json!({}))["structuredContent"], "added");
    }
}

#[test]
fn toolsets_are_joined_in_one_order_and_known_by_name() {
    for named in ["direct,compact", "compact,direct"] {
        let servers = json!({"s": scripted()});
        let mut us = Speaker::start(&servers, Legacy, json!({}), named);
        assert_eq!(us.names()[..4], ["execute_code", "search_tools", "health", "s__give"]);
        assert_eq!(us.call("execute_code", json!({"code": "6 * 7"}))["content"][0]["text"], "42");
        assert_eq!(us.call("s__dot_ted", json!({}))["structuredContent"], "dot.ted");
    }
    let home = tempfile::tempdir().expect("a directory");
    let check = |change: &dyn Fn(&mut Command) -> &mut Command, place: &str| {
        let mut command = command(home.path());
        change(&mut command);
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let sentence = "there is no toolset \"dircet\"; there are compact, direct";
        assert!(stderr.contains(place) && stderr.contains(sentence), "{stderr}");
        assert_eq!(output.status.code(), Some(2));
    };
    check(&|command| command.args(["--toolset", "dircet"]), "--toolset");
    check(&|command| command.env("CODEXEC_TOOLSET", "dircet"), "CODEXEC_TOOLSET");
    let settings = home.path().join("settings.toml");
    std::fs::write(&settings, "toolset = ['dircet']").expect("written");
    check(&|command| command.arg("--config").arg(&settings), "settings.toml: `toolset`");
}

/// The code has less time than the human takes.
#[test]
fn the_clock_of_code_stands_still_while_a_human_is_asked() {
    let mut us = Speaker::start(&json!({"s": scripted()}), Legacy, can_ask(), "compact");
    // Started before, so that the time goes to nothing else.
    us.call("execute_code", json!({"code": "await tools.s.give({result: {content: []}})"}));
    let arguments = json!({
        "code": "return await tools.s.ask(input);",
        "input": {"params": form()},
        "timeout_ms": 1_500,
    });
    let id = us.send("tools/call", json!({"name": "execute_code", "arguments": arguments}));
    let question = us.next("elicitation/create");
    // Longer than the code may run.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let answered = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
    us.client.write(&answered);
    let result = us.client.wait(id)["result"].clone();
    assert_eq!(result["content"][0]["text"], answer.to_string(), "{result}");
}

/// A client that leaves takes its question with it.
#[test]
fn a_call_that_is_cancelled_while_it_asks_takes_its_question_back() {
    let mut us = Speaker::scripted(Legacy, can_ask());
    us.names();
    let id = us.send("tools/call", json!({"name": "s__ask", "arguments": {"params": form()}}));
    let question = us.next("elicitation/create");
    let cancel = json!({"requestId": id});
    us.client
        .write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}));
    let taken = us.next("notifications/cancelled");
    assert_eq!(taken["params"]["requestId"], question["id"], "{taken}");
}
