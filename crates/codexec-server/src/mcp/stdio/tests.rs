use super::*;

#[track_caller]
fn check(line: &[u8], expected: &str) {
    let error = serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line).expect_err("garbled");
    assert_eq!(explain_parse_error(line, &error).to_string(), expected);
}

#[test]
fn a_call_with_invalid_unicode_gets_a_tool_result() {
    let expected = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\
        \"INVALID_ARGS: the request is not valid UTF-8, or has half a surrogate pair in a string; \
        send whole characters\"}],\"isError\":true}}";
    let call = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"X"}}}"#;
    let replaced = |with: &[u8]| {
        let at = call.iter().rposition(|&b| b == b'X').expect("X");
        [&call[..at], with, &call[at + 1..]].concat()
    };
    check(&replaced(b"\xff"), expected);
    check(&replaced(br"\ud83d"), expected);
}

#[test]
fn invalid_json_gets_a_parse_error() {
    let line = "{not json";
    let error =
        serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line.as_bytes()).expect_err("bad");
    assert_eq!(explain_parse_error(line.as_bytes(), &error)["error"]["code"], -32_700);
}
