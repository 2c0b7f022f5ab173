use super::*;
use crate::node::{ConfigNode, ConfigValue};

#[track_caller]
fn check_error(syntax: Syntax, text: &str, expected: &str) {
    let error = syntax.parse(text).expect_err("wrong");
    assert_eq!(format!("{}:{}: {}", error.line, error.column, error.what), expected);
}

#[test]
fn json_may_have_comments_and_trailing_commas() {
    let text = "\u{feff}{ // ours\n \"a\": { /* one\n two */ \"b\": \"x // \\\"y\", \"c\": [1, -2.5e3, true, null,], }, }";
    let root = Syntax::Json.parse(text).expect("JSON");
    let a = root.get("a").expect("a");
    assert_eq!((a.line, a.get("b").map(|b| b.line)), (2, Some(3)));
    assert_eq!(a.get("b").and_then(ConfigNode::text), Some("x // \"y"));
    let items = a.get("c").and_then(ConfigNode::items).expect("a list");
    let values: Vec<&ConfigValue> = items.iter().map(|item| &item.value).collect();
    assert_eq!(
        values,
        [
            &ConfigValue::Number("1".into()),
            &ConfigValue::Number("-2.5e3".into()),
            &ConfigValue::Bool(true),
            &ConfigValue::Null
        ]
    );
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    let root = Syntax::Json.parse(r#"{"a": 1, "b": 2, "a": 3}"#).expect("JSON");
    assert_eq!(root.get("a").and_then(ConfigNode::number), Some(3.0));
    let names: Vec<&str> = root.entries().expect("a table").iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["b", "a"]);
}

#[test]
fn errors_have_a_position() {
    check_error(Syntax::Json, "{", "1:2: it ends inside an object");
    check_error(Syntax::Json, "", "1:1: it ends too early");
    check_error(Syntax::Json, "{\n  \"a\" 1}", "2:7: `:` is expected after a key");
    check_error(Syntax::Json, "{\n  a: 1}", "2:3: a key in double quotes is expected");
    check_error(Syntax::Json, "[1 2]", "1:4: `,` or `]` is expected");
    check_error(Syntax::Json, "[1] 2", "1:5: unexpected '2' after the end");
    check_error(Syntax::Json, "[\"a\n\"]", "1:2: unterminated string");
    check_error(Syntax::Json, "[\"\\q\"]", "1:2: a string has an invalid character or escape");
    check_error(Syntax::Json, "\n/* x", "2:1: unterminated comment");
    check_error(Syntax::Json, "[01]", "1:2: a value is expected");
    check_error(
        Syntax::Toml,
        "a = 1\nb =\n",
        "2:4: string values must be quoted, expected literal string",
    );
    let error = Syntax::Yaml.parse("a: 1\nb: [1\nc: 2\n").expect_err("wrong");
    assert_eq!(error.line, 3, "{error:?}");
}

#[test]
fn lines_of_toml_and_yaml_are_those_of_the_keys() {
    let root = Syntax::Toml.parse("# x\n[s.a]\nb = 1\n[s.c]\n").expect("TOML");
    let s = root.get("s").expect("s");
    assert_eq!(s.get("a").map(|a| a.line), Some(2));
    assert_eq!(s.get("a").and_then(|a| a.get("b")).map(|b| b.line), Some(3));
    assert_eq!(s.get("c").map(|c| c.line), Some(4));
    let root = Syntax::Yaml.parse("# x\ns:\n  a:\n    b: [1, yes, ~]\n").expect("YAML");
    let a = root.get("s").and_then(|s| s.get("a")).expect("a");
    assert_eq!((a.line, a.get("b").map(|b| b.line)), (3, Some(4)));
}

/// THREAT[CFG-2]: a hostile file costs bounded time and no stack.
#[test]
fn cfg_2_deep_wide_and_repeating_files_are_refused() {
    let deep = "[".repeat(1_000_000);
    check_error(Syntax::Json, &deep, "1:65: it is nested deeper than 64 levels");
    let deep = "{\"a\":".repeat(1_000_000);
    check_error(Syntax::Json, &deep, "1:321: it is nested deeper than 64 levels");
    let wide = format!("[{}0]", "0,".repeat(1_000_000));
    check_error(Syntax::Json, &wide, "1:2000000: it has more than 1000000 values");
    assert!(Syntax::Yaml.parse(&"[".repeat(100_000)).is_err());
    assert!(Syntax::Toml.parse(&format!("a = {}", "[".repeat(100_000))).is_err());
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![before; 9].join(", ")));
    }
    assert!(Syntax::Yaml.parse(&bomb).is_err());
}
