use serde_json::json;

use super::*;

#[test]
fn lone_surrogates_become_a_mark() {
    let check = |text: &str, expected: &str| {
        assert_eq!(parse(text.as_bytes()).expect("repaired"), json!(expected), "{text}");
    };
    check(r#""\ud83d""#, "\u{fffd}");
    check(r#""a\ude00b""#, "a\u{fffd}b");
    check(r#""\ud83d\ude00""#, "\u{1f600}");
    check(r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}");
    check(r#""\\ud83d""#, "\\ud83d");
    check(r#""\\\ud83d é\ud83d""#, "\\\u{fffd} é\u{fffd}");
    assert_eq!(parse(b"\"caf\xe9 \\ud83d\"").expect("repaired"), json!("caf\u{fffd} \u{fffd}"));
    assert!(parse(br#"{"a": "\ud83d"#).is_err());
}

#[test]
fn the_owner_of_a_broken_line_is_found() {
    let check =
        |head: &str, expected: Owner| assert_eq!(owner(head.as_bytes()), expected, "{head}");
    check(r#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"te"#, Owner::Request(12));
    check(r#"{ "id" : 3 , "#, Owner::Request(3));
    check(r#"{"result":{"id":3,"text":"\"id\":4,"#, Owner::Unknown);
    check(r#"{"result":{"a":[1,{"id":3}]},"id":5}"#, Owner::Request(5));
    check(r#"{"id":"3","result""#, Owner::Server);
    check(r#"{"method":"notifications/message","params":{"#, Owner::Server);
    check(r#"{"id":12"#, Owner::Unknown);
    check("", Owner::Unknown);
    check("xxxxxx", Owner::Unknown);
}
