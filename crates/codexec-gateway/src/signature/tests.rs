use serde_json::json;

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "so that a case is written in place")]
#[track_caller]
fn check(input: Value, expected: &str) {
    assert_eq!(signature("t", &input, None), format!("t({expected}): Promise<unknown>"));
}

#[test]
fn objects() {
    check(json!({"type": "object"}), "");
    check(
        json!({"type": "object", "required": ["owner"], "properties": {
            "owner": {"type": "string"}, "page-size": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}},
            "deep": {"properties": {"x": {"type": ["string", "null"]}}}, "any": true}}),
        "args: { owner: string; \"page-size\"?: number; tags?: Array<string>; deep?: { x?: string | null }; any?: unknown }",
    );
    check(
        json!({"properties": {"map": {"type": "object", "additionalProperties": {"type": "number"}}}}),
        "args?: { map?: Record<string, number> }",
    );
}

#[test]
fn unions_enums_and_constants() {
    check(
        json!({"properties": {"a": {"enum": ["x", 1, null]}, "b": {"const": true},
            "c": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}),
        "args?: { a?: \"x\" | 1 | null; b?: true; c?: string | null }",
    );
}

#[test]
fn references_end() {
    check(
        json!({"$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}, "properties": {"n": {"$ref": "#/$defs/node"}}}),
        "args?: { n?: { next?: unknown } }",
    );
    check(json!({"properties": {"n": {"$ref": "file:///etc/passwd"}}}), "args?: { n?: unknown }");
}

#[test]
fn a_line_stays_a_line() {
    let schema = json!({"properties": {"*/\nevil\u{202e}": {"enum": ["a\nb\u{1b}[0m"]}}});
    check(schema, "args?: { \"*/ evil\"?: \"a b[0m\" }");
    let output = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    assert_eq!(signature("a.b", &json!({}), Some(&output)), "\"a.b\"(): Promise<{ ok?: boolean }>");
}
