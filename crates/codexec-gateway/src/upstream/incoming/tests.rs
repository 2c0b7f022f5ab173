use super::*;

fn in_flight() -> InFlight {
    InFlight { ids: [1, 2].into(), ..InFlight::default() }
}

/// Checks the number of messages in a line; `None` for junk.
#[track_caller]
fn check(line: &str, expected: Option<usize>) {
    let actual = read_messages(line.as_bytes(), &mut in_flight()).map(|messages| messages.len());
    assert_eq!(actual, expected, "{line}");
}

#[test]
fn answers_need_a_matching_request() {
    check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some(1));
    check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":"odd"}}"#, Some(1));
    check(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#, Some(0));
    check(r#"{"jsonrpc":"2.0","id":"9","result":{}}"#, Some(0));
    check(r#"{"jsonrpc":"2.0","id":"one","result":{}}"#, None);
    check(r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#, None);
    check(r#"{"jsonrpc":"2.0","id":1,"result":{"a":"#, Some(1));
    check(r#"{"jsonrpc":"2.0","id":1}"#, None);
}

#[test]
fn a_string_id_fails_its_call() {
    let line = br#"{"jsonrpc":"2.0","id":"1","result":{}}"#;
    let messages = read_messages(line, &mut in_flight()).expect("a message");
    let [Message::Error(error)] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(error.id, Some(NumberOrString::Number(1)));
}

#[test]
fn an_answer_is_taken_once() {
    let mut in_flight = in_flight();
    let line = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(read_messages(line, &mut in_flight).map(|messages| messages.len()), Some(1));
    assert_eq!(read_messages(line, &mut in_flight).map(|messages| messages.len()), Some(0));
}

#[test]
fn server_messages_are_handled() {
    check(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, Some(0));
    check(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#, Some(0));
    check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Some(0));
    check(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#, Some(1));
    check(
        r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]"#,
        Some(2),
    );
    check("Server running on stdio", None);
    check("42", None);
}

#[test]
fn an_oversized_line_fails_its_request_or_all() {
    let failed_ids =
        |head: &str| fail_oversized_line(head.as_bytes(), 10 << 20, &mut in_flight()).len();
    assert_eq!(failed_ids(r#"{"id":2,"result":"#), 1);
    assert_eq!(failed_ids(r#"{"result":"#), 2);
    assert_eq!(failed_ids(r#"{"method":"x","#), 0);
    assert_eq!(failed_ids(r#"{"id":7,"result":"#), 0);
}
