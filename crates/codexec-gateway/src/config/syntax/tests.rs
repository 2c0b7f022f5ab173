use super::*;
use crate::config::node::{Node, Tree};

#[track_caller]
fn wrong(syntax: Syntax, text: &str, expected: &str) {
    let error = syntax.parse(text).expect_err("wrong");
    assert_eq!(format!("{}:{}: {}", error.line, error.column, error.what), expected);
}

#[test]
fn json_is_read_as_people_write_it() {
    let text = "\u{feff}{ // ours\n \"a\": { /* one\n two */ \"b\": \"x // \\\"y\", \"c\": [1, -2.5e3, true, null,], }, }";
    let root = Syntax::Json.parse(text).expect("JSON");
    let a = root.get("a").expect("a");
    assert_eq!((a.line, a.get("b").map(|b| b.line)), (2, Some(3)));
    assert_eq!(a.get("b").and_then(Node::text), Some("x // \"y"));
    let items = a.get("c").and_then(Node::items).expect("a list");
    let values: Vec<&Tree> = items.iter().map(|item| &item.value).collect();
    assert_eq!(
        values,
        [&Tree::Number("1".into()), &Tree::Number("-2.5e3".into()), &Tree::Bool(true), &Tree::Null]
    );
}

#[test]
fn the_last_of_two_keys_counts() {
    let root = Syntax::Json.parse(r#"{"a": 1, "b": 2, "a": 3}"#).expect("JSON");
    assert_eq!(root.get("a").and_then(Node::number), Some(3.0));
    let names: Vec<&str> = root.entries().expect("a table").iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["b", "a"]);
}

#[test]
fn errors_tell_where() {
    wrong(Syntax::Json, "{", "1:2: it ends inside an object");
    wrong(Syntax::Json, "", "1:1: it ends too early");
    wrong(Syntax::Json, "{\n  \"a\" 1}", "2:7: `:` is expected after a key");
    wrong(Syntax::Json, "{\n  a: 1}", "2:3: a key in double quotes is expected");
    wrong(Syntax::Json, "[1 2]", "1:4: `,` or `]` is expected");
    wrong(Syntax::Json, "[1] 2", "1:5: '2' stands after the end");
    wrong(Syntax::Json, "[\"a\n\"]", "1:2: a string has no end on its line");
    wrong(
        Syntax::Json,
        "[\"\\q\"]",
        "1:2: a string has a character or escape that JSON does not know",
    );
    wrong(Syntax::Json, "\n/* x", "2:1: a comment has no end");
    wrong(Syntax::Json, "[01]", "1:2: a value is expected");
    wrong(
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

/// THREAT[CFG-2]: a file that is made to hurt costs a bounded time and no stack.
#[test]
fn cfg_2_deep_wide_and_repeating_files_are_refused() {
    let deep = "[".repeat(10_000_000);
    wrong(Syntax::Json, &deep, "1:65: it is nested deeper than 64");
    let deep = "{\"a\":".repeat(1_000_000);
    wrong(Syntax::Json, &deep, "1:321: it is nested deeper than 64");
    let wide = format!("[{}0]", "0,".repeat(1_000_000));
    wrong(Syntax::Json, &wide, "1:2000000: it has more than 1000000 values");
    assert!(Syntax::Yaml.parse(&"[".repeat(100_000)).is_err());
    assert!(Syntax::Toml.parse(&format!("a = {}", "[".repeat(100_000))).is_err());
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![before; 9].join(", ")));
    }
    assert!(Syntax::Yaml.parse(&bomb).is_err());
}
