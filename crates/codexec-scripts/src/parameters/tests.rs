use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "pages": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "mode": {"enum": ["fast", "safe"]}
        },
        "required": ["path"],
        "additionalProperties": false
    })
}

#[track_caller]
fn fails(input: &Value, message: &str) {
    let problems = check(&Checker::default(), &schema(), input).unwrap_err();
    assert_eq!(problems.first().map(String::as_str), Some(message));
    let all = "parameters: path (required), pages, mode";
    assert_eq!(problems.last().map(String::as_str), Some(all));
}

#[test]
fn problems_name_the_path_and_what_is_allowed() {
    check(&Checker::default(), &schema(), &json!({"path": "a", "pages": [1], "mode": "safe"}))
        .unwrap();
    fails(&json!({}), "`input.path` is missing");
    fails(&json!(null), "`input`: null is not of type \"object\"");
    fails(&json!({"path": 1}), "`input.path`: 1 is not of type \"string\"");
    fails(
        &json!({"path": "a", "pages": [1, 0]}),
        "`input.pages[1]`: 0 is less than the minimum of 1",
    );
    fails(&json!({"path": "a", "mode": "x"}), "`input.mode` must be one of [\"fast\",\"safe\"]");
    fails(&json!({"path": "a", "else": 1}), "`input.else` is not a parameter");
}

#[test]
fn messages_are_short_and_have_no_hidden_characters() {
    let input = json!({"path": "a", "mode": "\u{202e}".repeat(9_000) + &"x".repeat(9_000)});
    let wrong = check(&Checker::default(), &schema(), &input).unwrap_err().join(" ");
    assert!(wrong.len() < 1_000 && !wrong.contains('\u{202e}'), "{wrong}");
}

#[test]
fn scr_5_an_input_that_takes_minutes_to_check_is_refused() {
    let all: Vec<Value> =
        (0..4_000).map(|n| json!({"not": {"required": [format!("a{n}")]}})).collect();
    let items = json!({"type": "array", "items": {"allOf": all}});
    let schema = json!({"type": "object", "properties": {"list": items}});
    validate_parameters(&schema).unwrap();
    let input = json!({"list": vec![json!({"b": 1}); 100_000]});
    let wrong = check(&Checker::default(), &schema, &input).unwrap_err();
    assert!(wrong[0].starts_with("`input` is too much work"), "{wrong:?}");
}

#[test]
fn scr_5_a_schema_that_takes_too_long_or_refers_elsewhere_is_refused() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"properties": {"x": deep}});
    }
    let mut doubling = json!({"$defs": {"d0": {"type": "string"}}, "$ref": "#/$defs/d30"});
    for number in 1..=30 {
        let before = format!("#/$defs/d{}", number - 1);
        doubling["$defs"][format!("d{number}")] =
            json!({"allOf": [{"$ref": before.as_str()}, {"$ref": before.as_str()}]});
    }
    for bad in [
        json!({"properties": {"x": {"$ref": "#"}}}),
        json!({"$ref": "http://127.0.0.1/schema"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"properties": {"x": {"pattern": "(a{1000}){1000}"}}}),
        json!({"properties": {"x": {"pattern": "("}}}),
        json!({"properties": {"x": {"type": "nothing"}}}),
        json!({"type": "array"}),
        json!(["type"]),
        json!(true),
        deep,
        doubling,
    ] {
        let refused = validate_parameters(&bad).unwrap_err();
        assert!(!refused.is_empty(), "{bad}");
    }
}
