use serde_json::json;

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "so that a case is written in place")]
/// Checks the shape after these results.
#[track_caller]
fn check(results: &[Value], expected: Value) {
    let mut seen = OutputShape::default();
    for result in results {
        seen.observe(result);
    }
    assert_eq!(seen.schema(), expected);
}

#[test]
fn shapes_grow_with_each_result() {
    let text = || json!({"type": "string"});
    check(&[], json!({}));
    check(&[json!("a"), json!("b")], text());
    check(&[json!("a"), Value::Null], json!({"anyOf": [{"type": "string"}, {"type": "null"}]}));
    check(
        &[json!({"id": 1, "name": "a"}), json!({"id": 2})],
        json!({"type": "object", "properties": {"id": {"type": "integer"}, "name": text()}, "required": ["id"]}),
    );
    check(
        &[json!([]), json!([{"x": 1.5}, {"x": "y"}])],
        json!({"type": "array", "items": {"type": "object", "required": ["x"],
            "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}}),
    );
    check(&[json!([])], json!({"type": "array"}));
}

#[test]
fn txt_3_names_that_are_data_are_not_stored() {
    let map = |values: Value| json!({"type": "object", "additionalProperties": values});
    let number = || json!({"type": "integer"});
    for name in
        ["ann@example.com", "2026-01-01", "a b", "u-123456789", &"x".repeat(60), "\u{202e}x"]
    {
        check(&[json!({name: 1})], map(number()));
        check(&[json!({"plain": 1}), json!({name: 1})], map(number()));
    }
    let many: serde_json::Map<String, Value> =
        (0..41).map(|n| (format!("k{n}"), json!(n))).collect();
    check(&[Value::Object(many)], map(number()));
    // Each call has other keys.
    let each: Vec<Value> = (0..60).map(|n| json!({format!("user{n}"): n})).collect();
    check(&each, map(number()));
}
