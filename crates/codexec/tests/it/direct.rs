//! The toolset `direct`: what goes through it comes out as it was, in both eras.

mod asking;
mod bare;
mod speaker;

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use self::bare::Bare;
use self::speaker::Era::{self, Legacy, Modern};
use self::speaker::Speaker;

use crate::clients::Inspector;
use crate::support::{Client, PATIENCE, command};
use crate::world::World;

const UPSTREAM: &str = include_str!("direct/upstream.py");

pub(crate) fn scripted() -> Value {
    json!({"command": "python3", "args": ["-S", "-c", UPSTREAM]})
}

fn can_ask() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
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
        us.call_and_answer("everything__trigger-elicitation-request", &json!({}), &accept);
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

/// A client that nobody here wrote takes what goes through.
#[test]
fn the_inspector_lists_and_calls_upstream_tools() {
    for era in ["legacy", "modern"] {
        let servers = json!({"s": scripted()});
        let Some(inspector) = Inspector::with(era, "toolset = ['direct']", &servers) else {
            return;
        };
        let (code, said, complaint) = inspector.ask(&["--method", "tools/list", "--strict"]);
        assert_eq!(code, Some(0), "{era} {complaint}");
        assert_eq!(said["result"]["tools"][0]["name"], "s__give");
        let result = json!({"content": [{"type": "text", "text": "hello"}],
            "structuredContent": {"a": [1]}, "_meta": {"x/y": 1}});
        let given = json!({"result": result}).to_string();
        let call = ["--method", "tools/call", "--tool-name", "s__give", "--tool-args-json", &given];
        let (code, said, complaint) = inspector.ask(&call);
        assert_eq!(code, Some(0), "{era} {complaint}");
        assert_eq!(said["result"]["content"], result["content"]);
        assert_eq!(said["result"]["structuredContent"], result["structuredContent"]);
    }
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
    let sorry = "TOOL_NOT_ALLOWED: tool \"s.strict\" may not be called; the user's settings do not \
                 allow it (`allowed` under [tools] in config.toml)";
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

/// Of numbers that come faster than a client is told, the last ones count.
#[test]
fn progress_of_a_call_in_code_keeps_its_numbers_and_its_message() {
    let mut client = Client::start(&json!({"s": scripted()}));
    let code = "await tools.s.steps({ n: 3 }); return await tools.s.steps({ n: 5 })";
    let call = json!({"name": "execute_code", "arguments": {"code": code},
        "_meta": {"progressToken": "p"}});
    let id = client.send("tools/call", &call);
    assert_eq!(client.wait_call(id).fine(), "done");
    let told: Vec<Value> =
        client.others.drain(..).map(|message| message["params"].clone()).collect();
    let numbers: Vec<f64> = told.iter().filter_map(|step| step["progress"].as_f64()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{told:?}");
    let last = told.last().expect("progress");
    // Both calls together: 2 of 3, and 4 of 5.
    assert!((6.0..6.1).contains(&numbers[numbers.len() - 1]), "{told:?}");
    assert_eq!((&last["total"], &last["message"]), (&json!(8.0), &json!("step 4")), "{told:?}");
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
        assert_eq!(
            us.call("execute_code", json!({"language": "typescript", "code": "6 * 7"}))["content"]
                [0]["text"],
            "42"
        );
        assert_eq!(us.call("s__dot_ted", json!({}))["structuredContent"], "dot.ted");
    }
    for named in [
        "code-executor,code-execution-mode,mcpproxy,compact",
        "compact,mcpproxy,code-execution-mode,code-executor",
    ] {
        let mut us = Speaker::start(&json!({}), Legacy, json!({}), named);
        let names = [
            "executeTypescript",
            "executePython",
            "health",
            "run_python",
            "code_execution",
            "retrieve_tools",
            "call_tool",
            "execute_code",
            "search_tools",
        ];
        assert_eq!(us.names(), names);
        // The shape that was promised first counts.
        assert_eq!(us.call("health", json!({}))["structuredContent"]["healthy"], true);
    }
    let home = tempfile::tempdir().expect("a directory");
    let check = |change: &dyn Fn(&mut Command) -> &mut Command, place: &str| {
        let mut command = command(home.path());
        change(&mut command);
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let sentence = "there is no toolset \"dircet\"; there are codexec, code-executor, \
                        code-execution-mode, mcpproxy, compact, direct";
        assert!(stderr.contains(place) && stderr.contains(sentence), "{stderr}");
        assert_eq!(output.status.code(), Some(2));
    };
    check(&|command| command.args(["--toolset", "dircet"]), "--toolset");
    check(&|command| command.env("CODEXEC_TOOLSET", "dircet"), "CODEXEC_TOOLSET");
    let settings = home.path().join("settings.toml");
    std::fs::write(&settings, "toolset = ['dircet']").expect("written");
    check(&|command| command.arg("--config").arg(&settings), "settings.toml: `toolset`");
}
