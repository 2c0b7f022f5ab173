use super::*;

fn in_flight() -> InFlight {
    InFlight { ids: [1, 2].into(), ..InFlight::default() }
}

/// Checks the number of messages in a line; `None` for junk.
#[track_caller]
fn check(line: &str, expected: Option<usize>) {
    let actual = read(line.as_bytes(), &mut in_flight()).map(|messages| messages.len());
    assert_eq!(actual, expected, "{line}");
}

#[test]
fn answers_are_for_those_who_asked() {
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
fn an_id_as_text_fails_its_call_and_brings_no_result() {
    let line = br#"{"jsonrpc":"2.0","id":"1","result":{}}"#;
    let messages = read(line, &mut in_flight()).expect("a message");
    let [Message::Error(error)] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(error.id, Some(NumberOrString::Number(1)));
}

#[test]
fn an_answer_is_taken_once() {
    let mut in_flight = in_flight();
    let line = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(read(line, &mut in_flight).map(|messages| messages.len()), Some(1));
    assert_eq!(read(line, &mut in_flight).map(|messages| messages.len()), Some(0));
}

#[test]
fn the_servers_own_messages() {
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
fn a_line_too_long_fails_its_owner_or_all() {
    let losers = |head: &str| too_long(head.as_bytes(), 10 << 20, &mut in_flight()).len();
    assert_eq!(losers(r#"{"id":2,"result":"#), 1);
    assert_eq!(losers(r#"{"result":"#), 2);
    assert_eq!(losers(r#"{"method":"x","#), 0);
    assert_eq!(losers(r#"{"id":7,"result":"#), 0);
}
