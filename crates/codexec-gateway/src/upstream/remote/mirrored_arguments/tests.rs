use serde_json::json;

use super::*;

#[test]
fn header_annotations_are_checked() {
    let check = |schema: Value, expected: Result<usize, BadHeader>| {
        assert_eq!(find_mirrored_arguments(&schema).map(|found| found.len()), expected, "{schema}");
    };
    let text = |name: &str| json!({"type": "string", "x-mcp-header": name});
    check(json!({"type": "object"}), Ok(0));
    check(json!(true), Ok(0));
    check(json!({"properties": {"a": text("A"), "b": text("B")}}), Ok(2));
    check(json!({"properties": {"a": text("A"), "b": text("a")}}), Err(BadHeader::Twice));
    check(json!({"properties": {"a": text("")}}), Err(BadHeader::Name));
    check(json!({"properties": {"a": text("two words")}}), Err(BadHeader::Name));
    check(json!({"properties": {"a": text("X\r\nEvil")}}), Err(BadHeader::Name));
    check(
        json!({"properties": {"a": {"type": "string", "x-mcp-header": 1}}}),
        Err(BadHeader::Name),
    );
    check(
        json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
        Err(BadHeader::Type),
    );
    check(json!({"properties": {"a": {"x-mcp-header": "A"}}}), Err(BadHeader::Type));
    check(json!({"x-mcp-header": "A"}), Err(BadHeader::Misplaced));
    check(json!({"properties": {"a": {"items": text("A")}}}), Err(BadHeader::Misplaced));
    check(json!({"$defs": {"a": text("A")}}), Err(BadHeader::Misplaced));
    check(json!({"default": {"x-mcp-header": "A"}}), Ok(0));
    check(json!({"properties": {"x-mcp-header": {"type": "string"}}}), Ok(0));
    let many = (0..40).map(|n| (format!("p{n}"), text(&format!("H{n}")))).collect::<Map<_, _>>();
    check(json!({"properties": many}), Err(BadHeader::Many));
}
