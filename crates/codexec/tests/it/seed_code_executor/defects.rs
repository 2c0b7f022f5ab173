//! What went wrong there and cannot be said in one request and one reply.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::Seed;
use crate::startup::{python, upstream};
use crate::support::Client;
use crate::upstreams::scripted;

const HANG: &str = include_str!("../startup/hang.py");

/// There it took a minute, and with none that answered the server ended.
#[test]
fn a_hung_upstream_holds_nobody_up() {
    let hung = json!({"command": python(), "args": ["-c", HANG, "hung"]});
    let seed = &mut Seed::with(&json!({"up": upstream(&["up"]), "hung": hung}), |_| {});
    let code = "(await callMCPTool('mcp__up__who')).name";
    let args = json!({"code": code, "allowedTools": ["mcp__up__who"], "timeoutMs": 60_000});
    assert_eq!(seed.done("executeTypescript", &args), "up");
    let missing = json!({"command": "/nowhere/mcp-server"});
    let seed = &mut Seed::with(&json!({"hung": hung, "missing": missing}), |_| {});
    assert_eq!(seed.done("executePython", &json!({"code": "1 + 1"})), "2");
}

/// There `while True` in Python ended the server for everybody.
#[test]
fn the_server_answers_while_python_loops() {
    let seed = &mut Seed::start();
    let endless =
        json!({"code": "print('begun', flush=True)\nwhile True: pass", "timeoutMs": 2_000});
    let loops = seed.client.send_call("executePython", &endless);
    assert_eq!(seed.done("executePython", &json!({"code": "1 + 1"})), "2");
    assert_eq!(seed.done("executeTypescript", &json!({"code": "1 + 1"})), "2");
    seed.client.ping();
    let result = seed.wait(loops);
    let mut executed = result["structuredContent"].clone();
    assert!(executed["executionTimeMs"].take().as_u64().is_some_and(|ms| ms >= 2_000));
    assert_eq!(
        executed,
        json!({
            "success": false,
            "output": "begun\n",
            "error": "Execution timeout after 2.00s; do less, or ask for more with timeoutMs",
            "executionTimeMs": null,
            "toolCallsMade": [],
            "toolCallSummary": [],
        })
    );
}

/// There globals stayed, and what ran side by side printed into each other's output.
#[test]
fn executions_have_nothing_of_each_other() {
    let seed = &mut Seed::start();
    let keep = json!({"code": "leaked = 1\nimport builtins\nbuiltins.leaked = 2\n'kept'"});
    assert_eq!(seed.done("executePython", &keep), "kept");
    let look = json!({"code": "'leaked' in dir() or hasattr(__builtins__, 'leaked')"});
    assert_eq!(seed.done("executePython", &look), "false");
    let code = |name: &str| {
        format!(
            "import asyncio\nfor n in range(20):\n    print('{name}', n)\n    await asyncio.sleep(0.01)"
        )
    };
    let names = ["one", "two", "three"];
    let ids =
        names.map(|name| seed.client.send_call("executePython", &json!({"code": code(name)})));
    for (id, name) in ids.into_iter().zip(names) {
        let expected: String = (0..20).map(|n| format!("{name} {n}\n")).collect();
        assert_eq!(seed.wait(id)["structuredContent"]["output"], expected);
    }
}

/// There TypeScript reached every port of this machine.
#[test]
fn code_reaches_no_port_of_this_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("set");
    let port = listener.local_addr().expect("an address").port();
    let seed = &mut Seed::start();
    let code = format!(
        "import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 5)\n\
         except OSError as error:\n    print(type(error).__name__)"
    );
    let output = seed.done("executePython", &json!({"code": code}));
    assert!(output.ends_with("Error\n"), "{output}");
    assert!(listener.accept().is_err(), "nobody came");
    let code = "[typeof fetch, typeof Deno, typeof require, typeof process].join(' ')";
    let names = seed.done("executeTypescript", &json!({"code": code}));
    assert_eq!(names, "undefined undefined undefined undefined");
}

/// There a line about each execution went into the protocol's own stream.
#[test]
fn nothing_but_the_protocol_is_written_to_standard_output() {
    // The client looks at every line.
    let seed = &mut Seed::start();
    let forged = "print('{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}')";
    for n in 0..5 {
        let output = seed.done("executePython", &json!({"code": format!("{forged}\n{n}")}));
        assert_eq!(output, format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}\n{n}"));
    }
    assert!(seed.client.leave().success());
    assert_eq!(seed.client.others, Vec::<Value>::new());
}

/// There Python was there only with two settings, one of which no page named; and there was no
/// `health` without it.
#[test]
fn three_tools_are_listed_without_any_settings() {
    let mut seed = Seed::start();
    let list = seed.client.request("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["executeTypescript", "executePython", "health"]);
    for tool in tools {
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
    }
    let tokens = list["result"].to_string().chars().count().div_ceil(4);
    assert!(tokens <= 1_200, "{tokens} tokens");
}

/// Where `health` is in two toolsets, the shape that was promised wins; the order is constant.
#[test]
fn the_toolset_goes_together_with_others() {
    for names in ["compact,code-executor", "code-executor,compact"] {
        let mut client = Client::with(&json!({}), |command| {
            command.args(["--toolset", names]);
        });
        let list = client.request("tools/list", &json!({}));
        let tools = list["result"]["tools"].as_array().expect("tools").iter();
        let listed: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
        let expected =
            ["executeTypescript", "executePython", "health", "execute_code", "search_tools"];
        assert_eq!(listed, expected, "{names}");
        let health = client.call("health", &json!({})).fine();
        let health: Value = serde_json::from_str(&health).expect("JSON");
        assert!(health["connectionPool"].is_object(), "{health}");
    }
}

/// There the text was cut at its end and the error not at all; here both have their ends, and the
/// rest is a resource.
#[test]
fn long_output_keeps_both_of_its_ends() {
    let seed = &mut Seed::start();
    let code = "console.log('a'.repeat(4000) + 'b'.repeat(60000) + 'c'.repeat(3999))";
    let output = seed.done("executeTypescript", &json!({"code": code}));
    let (first, rest) = output.split_once('\n').expect("lines");
    let cut = "[cut: 68000 characters, the first 4000 and the last 4000 are shown; the whole is \
               the resource codexec://executions/exec_";
    assert!(first.starts_with(cut), "{first}");
    let (head, tail) = ("a".repeat(4_000), "c".repeat(3_999));
    assert_eq!(rest, format!("{head}\n[... 60000 characters left out ...]\n{tail}\n"));
    let failing = json!({"code": format!("{code}\nthrow new Error('e'.repeat(20000))")});
    let executed = seed.executed("executeTypescript", &failing);
    for field in ["output", "error"] {
        let chars = executed[field].as_str().expect("text").chars().count();
        assert!((4_000..5_000).contains(&chars), "{field}: {chars}");
    }
}

/// The queue is first in, first out, also while the server starts.
#[test]
fn calls_that_wait_for_a_server_are_made_in_order() {
    let seed = &mut Seed::with(&json!({"up": upstream(&["up"])}), |command| {
        command.env("POOL_MAX_CONCURRENT", "1");
    });
    let code = "const order = [];
        await Promise.all([...Array(12).keys()].map(async (n) => {
            await callMCPTool('mcp__up__who');
            order.push(n);
        }));
        return order;";
    let args = json!({"code": code, "allowedTools": ["mcp__up__who"], "timeoutMs": 60_000});
    for _ in 0..2 {
        let order: Value =
            serde_json::from_str(&seed.done("executeTypescript", &args)).expect("JSON");
        assert_eq!(order, json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]));
    }
}

/// The words and codes that code looks for.
#[test]
fn an_open_circuit_and_a_full_queue_have_their_words_and_codes() {
    let seed = &mut Seed::with(&json!({"bad": scripted(&json!({}))}), |command| {
        command.env("POOL_MAX_CONCURRENT", "1").env("POOL_QUEUE_SIZE", "1");
    });
    let mut run = |code: &str| -> Value {
        let args = json!({"code": code, "allowedTools": ["mcp__bad__*"], "timeoutMs": 60_000});
        serde_json::from_str(&seed.done("executeTypescript", &args)).expect("JSON")
    };
    let full = "const hang = () => callMCPTool('mcp__bad__hang', {});
        try { await Promise.race([hang(), hang(), hang()]); } catch (error) {
            return [error.code, error.message];
        }";
    let why = "server \"bad\": Service Unavailable: 1 calls are under way and 1 more wait; try \
               again in 1 s";
    assert_eq!(run(full), json!(["SERVICE_UNAVAILABLE", why]));
    let seed = &mut Seed::with(&json!({"bad": scripted(&json!({}))}), |_| {});
    let mut run = |code: &str| -> Value {
        let args = json!({"code": code, "allowedTools": ["mcp__bad__*"], "timeoutMs": 60_000});
        serde_json::from_str(&seed.done("executeTypescript", &args)).expect("JSON")
    };
    let broken = "const names = ['hang', 'hang', 'hang', 'hang', 'die'];
        await Promise.allSettled(names.map((name) => callMCPTool(`mcp__bad__${name}`, {})));
        try { await callMCPTool('mcp__bad__echo', {}); } catch (error) {
            return [error.code, error.message.includes('circuit open')];
        }";
    assert_eq!(run(broken), json!(["CIRCUIT_OPEN", true]));
}
