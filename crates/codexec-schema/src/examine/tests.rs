use serde_json::json;

use super::*;

#[track_caller]
fn refuses(schema: &Value, expected: &str) {
    let problem = validate_schema(schema).unwrap_err();
    assert!(problem.starts_with(expected), "{problem}");
}

#[test]
fn a_valid_schema_is_accepted() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "description": "anything",
        "properties": {
            "a": {"$ref": "#/$defs/id"},
            "b": {"anyOf": [{"type": ["string", "null"]}, true], "default": 5},
            "c": {"type": "array", "items": {"$ref": "#/$defs/id"}, "uniqueItems": true}
        },
        "required": ["a"],
        "patternProperties": {"^x-": {"minimum": 1}},
        "additionalProperties": false,
        "$defs": {"id": {"type": "integer"}}
    });
    validate_schema(&schema).unwrap();
}

#[test]
fn invalid_keywords_are_named() {
    refuses(&json!({"type": "nothing"}), "`type` cannot be \"nothing\"");
    refuses(&json!({"properties": {"a": {"minimum": "1"}}}), "`minimum` cannot be \"1\"");
    refuses(&json!({"required": "a"}), "`required` cannot be \"a\"");
    refuses(&json!({"items": 5}), "5 is not a schema");
    refuses(&json!({"pattern": "a(?=b)"}), "the pattern \"a(?=b)\" is invalid, too large, or not");
    refuses(&json!({"patternProperties": {"(": true}}), "the pattern \"(\" is invalid, too large");
}

#[test]
fn ord_2_a_circular_or_too_large_schema_is_refused() {
    refuses(
        &json!({"$ref": "http://127.0.0.1/x"}),
        "the reference \"http://127.0.0.1/x\" does not point into the schema",
    );
    refuses(&json!({"properties": {"a": {"$ref": "#"}}}), "the reference \"#\" is circular");
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}});
    refuses(&circle, "the reference \"#/$defs/a\" is circular");
    let mut deep = json!(true);
    for _ in 0..100 {
        deep = json!({"not": deep});
    }
    refuses(&deep, "it has more than 64 levels");
    let mut doubling = json!({"$defs": {"d0": true}, "$ref": "#/$defs/d30"});
    for number in 1..=30 {
        let before = format!("#/$defs/d{}", number - 1);
        doubling["$defs"][format!("d{number}")] =
            json!({"allOf": [{"$ref": before.as_str()}, {"$ref": before.as_str()}]});
    }
    refuses(&doubling, "it has more than 20000 parts");
    let mut chain = json!({"$defs": {"d0": true}, "$ref": "#/$defs/d20000"});
    for number in 1..=20_000 {
        chain["$defs"][format!("d{number}")] = json!({"$ref": format!("#/$defs/d{}", number - 1)});
    }
    refuses(&chain, "it has more than 64 levels");
}
