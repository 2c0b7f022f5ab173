//! Whatever a client sends: one clear answer that names the field and what is allowed, and a
//! server that still answers.

use serde_json::{Value, json};

use crate::support::{Client, ToolText};

fn client() -> Client {
    Client::start(&json!({}))
}

/// A call whose arguments are refused, with this text, as a result that the agent can read.
#[track_caller]
fn check(client: &mut Client, tool: &str, arguments: &Value, expected: &str) {
    let said = client.call(tool, arguments);
    assert_eq!(said, ToolText { text: format!("INVALID_ARGS: {expected}"), is_error: true });
    client.ping();
}

/// A line that is answered with exactly this message.
#[track_caller]
fn check_line(client: &mut Client, line: impl AsRef<[u8]>, expected: &Value) {
    client.write_bytes(line.as_ref());
    client.write_bytes(b"\n");
    assert_eq!(client.next_message(), *expected);
    client.ping();
}

fn refused(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn invalid_args(id: &Value, text: &str) -> Value {
    let text = format!("INVALID_ARGS: {text}");
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "content": [{"type": "text", "text": text}], "isError": true}})
}

/// `tools/call` of `execute_code` with this text where its code should be, quotes included.
fn call_line(id: u64, code: &[u8]) -> Vec<u8> {
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"execute_code","arguments":{{"language":"typescript","code":"#
    );
    [head.as_bytes(), code, b"}}}"].concat()
}

#[test]
fn wrong_types_in_execute_code_are_refused_by_name() {
    let client = &mut client();
    let mut check = |field: &str, value: Value, allowed: &str| {
        let mut arguments = json!({"code": "1"});
        arguments[field] = value.clone();
        let expected = format!("{field}: {value} is not allowed; it must be {allowed}");
        check(client, "execute_code", &arguments, &expected);
    };
    for value in [json!(5), json!(true), json!(["1"]), json!({"a": 1})] {
        check("code", value.clone(), "a string");
        check("working_dir", value.clone(), "a string");
        check("language", value, "a string");
    }
    let languages = "one of typescript, javascript, python, bash, node, ts, js, py, sh, mjs";
    for value in ["cobol", "TypeScript", "python3", ""] {
        check("language", json!(value), languages);
    }
    let times = "a whole number from 1 to 300000";
    for value in [json!(0), json!(300_001), json!(1.5), json!(-1), json!("x"), json!(true)] {
        check("timeout_ms", value, times);
    }
    let calls = "a whole number from 0 to 1000";
    for value in [json!(-1), json!(1_001), json!(0.5), json!("1"), json!([])] {
        check("max_tool_calls", value, calls);
    }
    for field in ["allowed_tools", "allowed_servers"] {
        for value in [json!("time.*"), json!({}), json!(1)] {
            check(field, value, "an array of strings");
        }
    }
}

#[test]
fn one_wrong_item_of_a_list_is_named() {
    let client = &mut client();
    for field in ["allowed_tools", "allowed_servers"] {
        let expected = format!("{field}: 1 is not allowed; it must be an array of strings");
        check(client, "execute_code", &json!({"code": "1", field: ["a.*", 1]}), &expected);
    }
}

#[test]
fn missing_and_unknown_fields_are_named_with_what_is_allowed() {
    let client = &mut client();
    let missing = "code: it is missing; it must be a string (or give `script`, the name of a \
                   saved one)";
    check(client, "execute_code", &json!({}), missing);
    check(client, "execute_code", &json!({"code": null}), missing);
    check(
        client,
        "execute_code",
        &json!({"code": "1", "cod": 1, "x": 2}),
        "cod, x: unknown; allowed fields: code, script, version, language, session, input, args, \
         working_dir, timeout_ms, allowed_tools, allowed_servers, max_tool_calls",
    );
}

#[test]
fn search_tools_checks_every_field() {
    let client = &mut client();
    let mut check = |arguments: Value, expected: &str| {
        check(client, "search_tools", &arguments, expected);
    };
    check(json!({}), "query: it is missing; it must be a string");
    check(json!({"query": 1}), "query: 1 is not allowed; it must be a string");
    for limit in [json!(0), json!(101), json!("9"), json!(2.5)] {
        let expected =
            format!("limit: {limit} is not allowed; it must be a whole number from 1 to 100");
        check(json!({"query": "x", "limit": limit}), &expected);
    }
    check(
        json!({"query": "x", "detail": "all"}),
        "detail: \"all\" is not allowed; it must be one of names, summary, full",
    );
    check(
        json!({"query": "x", "kind": "any"}),
        "kind: \"any\" is not allowed; it must be one of read_only, safe, destructive",
    );
    check(json!({"query": "x", "server": 1}), "server: 1 is not allowed; it must be a string");
    check(
        json!({"query": "x", "q": 1}),
        "q: unknown; allowed fields: query, limit, detail, kind, server",
    );
}

#[test]
fn health_takes_no_fields_and_says_so() {
    check(&mut client(), "health", &json!({"a": 1}), "a: unknown; no fields are allowed");
}

#[test]
fn a_bad_pattern_is_explained_once() {
    let client = &mut client();
    for pattern in ["nodot", "mcp__x", "time.", ".x", ""] {
        let expected = format!(
            "allowed_tools: {pattern:?} is not a tool pattern; write it like \
             \"github.get_issue\", \"github.*\", \"mcp__github__*\" or \"*\""
        );
        check(client, "execute_code", &json!({"code": "1", "allowed_tools": [pattern]}), &expected);
    }
}

#[test]
fn empty_code_and_nul_are_refused() {
    let client = &mut client();
    for code in ["", " ", "\n\t \n"] {
        let expected = "code: it is empty; send at least one statement";
        check(client, "execute_code", &json!({"code": code}), expected);
    }
    for (code, at) in [("\0", 0), ("1\0", 1), ("'ä\0'", 3)] {
        let expected = format!("code: it has a NUL character at byte {at}; remove it");
        check(client, "execute_code", &json!({"code": code}), &expected);
    }
}

#[test]
fn code_of_exactly_one_mebibyte_runs_and_one_byte_more_does_not() {
    let client = &mut client();
    let code = |bytes: usize| format!("40+2{}", " ".repeat(bytes - 4));
    assert_eq!(client.run(&code(1 << 20)).fine(), "42");
    check(
        client,
        "execute_code",
        &json!({"code": code((1 << 20) + 1)}),
        "code: it has 1048577 bytes; at most 1048576 are allowed",
    );
}

#[test]
fn a_working_dir_is_named_whole_and_is_there() {
    let client = &mut client();
    let mut check = |path: &str, expected: &str| {
        let arguments = json!({"code": "1", "language": "bash", "working_dir": path});
        let said = client.call("execute_code", &arguments);
        assert_eq!(said, ToolText { text: expected.to_owned(), is_error: true });
        client.ping();
    };
    for path in ["", "src", "~ann", "~ann/x", "."] {
        let expected = format!(
            "INVALID_ARGS: working_dir: \"{path}\" is not an absolute path; write it from \
             `/` or `~/` on"
        );
        check(path, &expected);
    }
    check("/a\0b", "INVALID_ARGS: working_dir: \"/a\\u{0}b\" has a NUL character; remove it");
    check(
        "/a/../b",
        "INVALID_ARGS: working_dir: \"/a/../b\" contains `..`; write the absolute path without it",
    );
    // Nothing is told about what is there: the client was started at home, so nothing is allowed.
    for path in ["/usr", "/nowhere", "/usr/nowhere"] {
        check(
            path,
            &format!(
                "WORKING_DIR_NOT_ALLOWED: working_dir: {path} is not allowed; no directory is; \
                 the user can add it to `allowed` under [files] in config.toml"
            ),
        );
    }
    check("/etc", "WORKING_DIR_NOT_ALLOWED: working_dir: /etc may never be used: /etc is private");
}

#[test]
fn typescript_has_no_working_dir() {
    check(
        &mut client(),
        "execute_code",
        &json!({"code": "1", "working_dir": "/usr"}),
        "working_dir: typescript code has no files; use python, bash or node",
    );
}

#[test]
fn too_much_input_is_refused() {
    // Two of the bytes are the quotes.
    let fits = json!({"code": "input.length", "input": "x".repeat((4 << 20) - 2)});
    let client = &mut client();
    assert_eq!(client.call("execute_code", &fits).fine(), "4194302");
    check(
        client,
        "execute_code",
        &json!({"code": "1", "input": "x".repeat((4 << 20) - 1)}),
        "input: it has 4194305 bytes; at most 4194304 are allowed",
    );
}

#[test]
fn the_ends_of_every_range_are_allowed() {
    let client = &mut client();
    for arguments in [
        json!({"code": "42", "timeout_ms": 300_000}),
        json!({"code": "42", "timeout_ms": 30_000.0}),
        json!({"code": "42", "max_tool_calls": 0}),
        json!({"code": "42", "max_tool_calls": 1_000}),
        json!({"code": "42", "allowed_tools": [], "allowed_servers": []}),
        json!({"code": "42", "input": null, "timeout_ms": null, "allowed_tools": null}),
        json!({"code": "42", "language": "js"}),
    ] {
        assert_eq!(client.call("execute_code", &arguments).fine(), "42", "{arguments}");
    }
}

#[test]
fn text_that_is_not_unicode_gets_a_tool_result() {
    let client = &mut client();
    let sorry = "the request is not valid UTF-8, or has half a surrogate pair in a string; send \
                 whole characters";
    for code in [&b"\"\xff\""[..], b"\"caf\xe9\"", br#""\ud83d""#, br#""\ude00 \ud83d""#] {
        check_line(client, call_line(70, code), &invalid_args(&json!(70), sorry));
    }
    // A whole pair is fine.
    client.write_bytes(&call_line(71, br#""'\ud83d\ude00'""#));
    client.write_bytes(b"\n");
    assert_eq!(client.wait_call(71).fine(), "😀");
}

#[test]
fn lines_that_are_not_json_get_a_parse_error() {
    let client = &mut client();
    let mut check_with = |line: &[u8], id: Value, why: &str| {
        let expected = refused(&id, -32_700, &format!("the message is not JSON: {why}"));
        check_line(client, line, &expected);
    };
    check_with(
        br#"{"jsonrpc":"2.0","id":1,"method":"ping"} more"#,
        json!(1),
        "trailing characters at line 1 column 42",
    );
    let mut check = |line: &[u8], why: &str| check_with(line, Value::Null, why);
    check(b"{", "EOF while parsing an object at line 1 column 1");
    check(b"hello", "expected value at line 1 column 1");
    check(b"\x00", "expected value at line 1 column 1");
    check(b"\xff\xfe", "expected value at line 1 column 1");
    check(&[b'['; 5_000], "recursion limit exceeded at line 1 column 128");
}

#[test]
fn json_that_is_no_request_is_refused_with_its_id() {
    let client = &mut client();
    let mut check = |line: Value, id: Value, message: &str| {
        check_line(client, line.to_string(), &refused(&id, -32_600, message));
    };
    for line in [json!(null), json!(5), json!("ping"), json!({}), json!({"jsonrpc": "2.0"})] {
        check(line, Value::Null, "the message has no method");
    }
    check(json!({"jsonrpc": "2.0", "id": 60}), json!(60), "the message has no method");
    let unlike = "the message is not a request: unrecognized JSON-RPC message";
    let ping = json!({"jsonrpc": "2.0", "id": 61, "method": "ping"});
    let with = |field: &str, value: Value| {
        let mut line = ping.clone();
        line[field] = value;
        line
    };
    check(with("jsonrpc", json!("1.0")), json!(61), unlike);
    check(with("jsonrpc", json!(null)), json!(61), unlike);
    check(with("method", json!(5)), json!(61), unlike);
    check(with("params", json!([])), json!(61), unlike);
    check(with("params", json!(5)), json!(61), unlike);
    check(with("id", json!(1.5)), json!(1.5), unlike);
    // What no id can be is not sent back.
    for id in [json!(null), json!(true), json!({}), json!([1])] {
        check(with("id", id), Value::Null, unlike);
    }
}

#[test]
fn a_batch_is_refused_as_such() {
    let client = &mut client();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for batch in [json!([]), json!([ping]), json!([ping, ping])] {
        let sorry = "a batch is not supported; send one message a line";
        check_line(client, batch.to_string(), &refused(&Value::Null, -32_600, sorry));
    }
}

#[test]
fn ids_of_every_allowed_kind_come_back_as_they_were() {
    let client = &mut client();
    for id in [json!("a"), json!(""), json!("ä\u{1f600}"), json!(0), json!(-4), json!(i64::MAX)] {
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        check_line(client, ping.to_string(), &json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
}

#[test]
fn what_needs_no_answer_gets_none() {
    let client = &mut client();
    for line in [
        "",
        "   ",
        "\r",
        r#"{"jsonrpc":"2.0","method":"nobody/knows"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":50,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":51,"error":{"code":1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":52}}"#,
    ] {
        client.write_bytes(line.as_bytes());
        client.write_bytes(b"\n");
        // The very next message is the answer to the ping.
        let id = client.send("ping", &json!({}));
        assert_eq!(client.next_message(), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
}

#[test]
fn unknown_methods_and_tools_are_refused() {
    let client = &mut client();
    let error = |reply: Value| (reply["error"]["code"].clone(), reply["error"]["message"].clone());
    let unknown = client.request("nobody/knows", &json!({}));
    assert_eq!(error(unknown), (json!(-32_601), json!("there is no method \"nobody/knows\" here")));
    let unknown = client.request("tools/call", &json!({"name": "nobody", "arguments": {}}));
    let sorry = "there is no tool \"nobody\" here; there are execute_code, search_tools, health, \
                 and inside execute_code `tools.<server>.<tool>(..)`";
    assert_eq!(error(unknown), (json!(-32_602), json!(sorry)));
    client.ping();
}

#[test]
fn arguments_that_are_no_object_get_a_tool_result() {
    let client = &mut client();
    for arguments in [json!([]), json!("code"), json!(5), json!(true)] {
        let params = json!({"name": "execute_code", "arguments": arguments});
        let reply = client.request("tools/call", &params);
        let sorry = format!("arguments: {arguments} is not allowed; it must be an object");
        assert_eq!(reply, invalid_args(&reply["id"], &sorry));
        client.ping();
    }
}

#[test]
fn a_call_without_a_name_is_told_what_is_missing() {
    let client = &mut client();
    for params in [json!({}), json!({"name": 5}), json!({"arguments": {}})] {
        let reply = client.request("tools/call", &params);
        let sorry = "tools/call takes {\"name\": string, \"arguments\": object}";
        assert_eq!(reply, refused(&reply["id"], -32_602, sorry));
        client.ping();
    }
    let line = json!({"jsonrpc": "2.0", "id": 62, "method": "tools/call"}).to_string();
    let sorry = "tools/call takes {\"name\": string, \"arguments\": object}";
    check_line(client, line, &refused(&json!(62), -32_602, sorry));
}

/// A client that is never told waits for ever: the answer carries the request's own id.
#[test]
fn a_line_of_twenty_megabytes_is_refused_with_its_id() {
    let client = &mut client();
    let code = [b"\"".as_slice(), &vec![b'x'; 20_000_000], b"\""].concat();
    let line = call_line(63, &code);
    let sorry = "the message is longer than 8388608 bytes";
    check_line(client, line, &invalid_args(&json!(63), sorry));
}

#[test]
fn a_message_that_is_nested_too_deep_is_refused_with_its_id() {
    let client = &mut client();
    let input = format!("\"1\",\"input\":{}{}", "[".repeat(200), "]".repeat(200));
    client.write_bytes(&call_line(64, input.as_bytes()));
    client.write_bytes(b"\n");
    assert_eq!(client.next_message()["id"], 64);
    client.ping();
}

#[test]
fn a_second_request_with_the_same_id_harms_nobody() {
    let client = &mut client();
    let slow = b"\"await new Promise((done) => setTimeout(done, 200)); 1\"";
    client.write_bytes(&[call_line(65, slow), call_line(65, b"\"2\"")].join(&b'\n'));
    client.write_bytes(b"\n");
    // Which of the two is answered is the client's own confusion; one has to be.
    let said = client.wait_call(65).fine();
    assert!(["1", "2"].contains(&said.as_str()), "{said}");
    assert_eq!(client.run("3").fine(), "3");
    client.ping();
}
