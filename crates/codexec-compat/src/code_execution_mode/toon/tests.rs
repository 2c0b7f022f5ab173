//! Tests each form once. `codexec/tests/it/seed_execution_mode/toon.rs` checks with a foreign
//! decoder that all of them can be read back.

use serde_json::json;

use super::*;

#[track_caller]
fn check(value: &Value, expected: &str) {
    assert_eq!(encode(value), expected);
}

#[test]
fn objects_and_primitives() {
    check(&json!({"a": 1, "b": "text", "c": true, "d": null}), "a: 1\nb: text\nc: true\nd: null");
    check(&json!({"a": {"b": {"c": 1}}, "d": {}}), "a:\n  b:\n    c: 1\nd:");
    check(&json!({}), "");
    check(&json!("alone"), "alone");
    check(&json!(""), "\"\"");
}

#[test]
fn ambiguous_strings_are_quoted() {
    for text in [
        "",
        " a",
        "a ",
        "\u{a0}a",
        "\u{feff}a",
        "true",
        "false",
        "null",
        "1",
        "-1",
        "1e5",
        "05",
        "+1",
        "1.5",
        "-",
        "- a",
        "#a",
        "a:b",
        "a,b",
        "[1]",
        "{a}",
        "\"",
        "\\",
        "a\nb",
        "a\u{1}b",
    ] {
        let written = encode(&json!({"k": text}));
        assert!(written.starts_with("k: \"") && written.ends_with('"'), "{written}");
        assert_eq!(written.lines().count(), 1);
    }
    for text in ["a b", "a-b", "a#b", "é", "1a", "v1.5", "True", "a|b", "/x/y", "日本"] {
        check(&json!({"k": text}), &format!("k: {text}"));
    }
    check(&json!("a\"\\\n\r\t\u{1}"), "\"a\\\"\\\\\\n\\r\\t\\u0001\"");
    check(
        &json!({"a b": 1, "1a": 2, "": 3, "a.b": 4, "_": 5}),
        "\"a b\": 1\n\"1a\": 2\n\"\": 3\na.b: 4\n_: 5",
    );
}

#[test]
fn numbers_have_no_exponent() {
    check(
        &json!([1e21, 1e-7, -0.0, 1.0, -2.5, u64::MAX, i64::MIN]),
        "[7]: 1000000000000000000000,0.0000001,0,1,-2.5,18446744073709551615,-9223372036854775808",
    );
}

#[test]
fn arrays() {
    check(&json!({"a": [], "b": [1, "x,y", null]}), "a[0]:\nb[3]: 1,\"x,y\",null");
    check(&json!([[1, 2], [], [[3]]]), "[3]:\n  - [2]: 1,2\n  - [0]:\n  - [1]:\n    - [1]: 3");
    check(&json!({"t": [{"id": 1, "n": "a"}, {"n": "b", "id": 2}]}), "t[2]{id,n}:\n  1,a\n  2,b");
    check(&json!([{"a b": 1}, {"a b": "x:y"}]), "[2]{\"a b\"}:\n  1\n  \"x:y\"");
    // Not tables: the rows differ, or contain more than primitives.
    check(&json!([{"a": 1}, {"b": 1}]), "[2]:\n  - a: 1\n  - b: 1");
    check(&json!([{"a": 1}, {"a": []}]), "[2]:\n  - a: 1\n  - a[0]:");
    check(&json!([{}, {}, "x"]), "[3]:\n  -\n  -\n  - x");
}

#[test]
fn the_content_of_items_is_indented() {
    check(&json!([{"a": {"b": 1}, "c": 2}, 3]), "[2]:\n  - a:\n      b: 1\n    c: 2\n  - 3");
    let table = json!([{"t": [{"x": 1}, {"x": 2}], "c": 3}, 4]);
    check(&table, "[2]:\n  - t[2]{x}:\n      1\n      2\n    c: 3\n  - 4");
    let lists = json!([{"l": [1, [2]], "c": 3}, 4]);
    check(&lists, "[2]:\n  - l[2]:\n      - 1\n      - [1]: 2\n    c: 3\n  - 4");
    // Inside a list, a table needs a name.
    check(&json!([[{"x": 1}, {"x": 2}]]), "[1]:\n  - [2]:\n    - x: 1\n    - x: 2");
}
