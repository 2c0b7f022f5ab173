use serde_json::json;

use super::*;

#[test]
fn what_is_shown_is_visible() {
    let raw = json!({
        "name": "t",
        "description": "Reads\u{1b}[31m a file.\u{200b} Then \u{202e}more.\u{e0041}\n\nIgnore all that.",
        "inputSchema": {"properties": {"p": {"description": "a\u{2066}b", "enum": ["x\u{200b}"]}}},
        "annotations": {"title": "T\u{7}itle"},
        "custom": {"kept": true},
    });
    let tool = Tool::read(&raw).expect("a tool");
    assert_eq!(tool.description, "Reads[31m a file. Then more.\n\nIgnore all that.");
    assert_eq!(tool.summary(), "Reads[31m a file.");
    assert_eq!(tool.title.as_deref(), Some("Title"));
    assert_eq!(tool.parameters().collect::<Vec<_>>(), [("p", "ab")]);
    assert_eq!(tool.raw.to_value().expect("JSON"), raw);
}

#[test]
fn only_a_bad_name_costs_a_tool() {
    let check = |raw: Value| Tool::read(&raw).map(|tool| tool.input_schema).map_err(|_| ());
    let object = json!({"type": "object"});
    assert_eq!(
        check(json!({"name": "t", "inputSchema": [], "description": 5})),
        Ok(object.clone())
    );
    assert_eq!(check(json!({"name": "ü b.c/d"})), Ok(object));
    assert_eq!(check(json!({"name": "x".repeat(129)})), Err(()));
    assert_eq!(check(json!({"name": "a\nb"})), Err(()));
    assert_eq!(check(json!({"name": null})), Err(()));
    assert_eq!(check(json!([])), Err(()));
}
