use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::tool::Tool;

fn entry(server: &str, raw: &Value) -> CatalogueEntry {
    let tool = Arc::new(Tool::read(raw).expect("a tool"));
    CatalogueEntry { server: ServerName::new(server).expect("a name"), tool }
}

fn names(pairs: &[(&str, &str)]) -> Vec<String> {
    let entries: Vec<CatalogueEntry> =
        pairs.iter().map(|(server, tool)| entry(server, &json!({ "name": tool }))).collect();
    assign_direct_names(&entries.iter().collect::<Vec<_>>())
}

#[test]
fn a_name_is_server_and_tool() {
    assert_eq!(names(&[("git", "log"), ("my-hub", "get-x")]), ["git__log", "my-hub__get-x"]);
}

#[test]
fn equal_names_are_made_unique() {
    // A tool whose name needs no change keeps it, wherever it is listed.
    let named = names(&[("s", "a.b"), ("s", "a_b"), ("s", "a/b")]);
    assert_eq!(named, ["s__a_b_407e8e5c", "s__a_b", "s__a_b_fb3c0e4c"]);
    let named = names(&[("a__b", "c"), ("a", "b__c")]);
    assert_eq!(named, ["a__b__c", "a__b__c_01b8a75b"]);
    // Without a conflict, only the invalid character is replaced.
    assert_eq!(names(&[("s", "a.b")]), ["s__a_b"]);
    assert_eq!(names(&[("s", "größe")]), ["s__gr__e"]);
}

#[test]
fn long_names_are_shortened_and_stay_unique() {
    let (one, other) = (format!("{}1", "x".repeat(100)), format!("{}2", "x".repeat(100)));
    let named = names(&[("s", &one), ("s", &other)]);
    assert!(named.iter().all(|name| name.len() == NAME_CHARACTERS), "{named:?}");
    assert_ne!(named[0], named[1]);
    // The name does not depend on the other tool.
    assert_eq!(names(&[("s", &other)]), [named[1].clone()]);
}

#[test]
fn definitions_are_complete_and_cleaned() {
    let raw = json!({
        "name": "get", "title": "G\u{200b}et", "description": "Re\u{202e}ads.",
        "inputSchema": {"type": "object", "properties": {"id": {"description": "a\u{1b}n id"}}},
        "annotations": {"readOnlyHint": true, "title": "t\u{e0041}"},
        "_meta": {"vendor/x": [1, "y\u{200b}"]}, "icons": [{"src": "data:,"}], "later": true,
        "execution": {"taskSupport": "required"},
    });
    let expected = json!({
        "name": "s__get", "title": "Get", "description": "Reads.",
        "inputSchema": {"type": "object", "properties": {"id": {"description": "an id"}}},
        "annotations": {"readOnlyHint": true, "title": "t"},
        "_meta": {"vendor/x": [1, "y"]}, "icons": [{"src": "data:,"}], "later": true,
    });
    assert_eq!(build_definition(&entry("s", &raw), "s__get"), Some(expected));
    let long = json!({"name": "get", "description": "x".repeat(3000)});
    let shown = build_definition(&entry("s", &long), "s__get").expect("a definition");
    assert_eq!(shown["description"].as_str().map(str::len), Some(DESCRIPTION_BYTES));
    assert_eq!(shown["inputSchema"], json!({"type": "object"}));
    let huge = json!({"name": "get", "_meta": "x".repeat(DEFINITION_BYTES)});
    assert_eq!(build_definition(&entry("s", &huge), "s__get"), None);
}
