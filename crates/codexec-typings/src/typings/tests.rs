//! Typings of many schemas. The binary's tests check that they parse and type-check.

mod declarations;
mod hostile;

use serde_json::json;

use super::*;

/// Checks the arguments of the TypeScript and the Python signature.
#[expect(clippy::needless_pass_by_value, reason = "so that a case is written in place")]
#[track_caller]
fn check(input: Value, typescript: &str, python: &str) {
    let types = Typings::new(&input, None);
    let expected = format!("t({typescript}): Promise<unknown>");
    assert_eq!(types.signature(TypingsLanguage::TypeScript, "s", "t"), expected);
    assert_eq!(types.signature(TypingsLanguage::Python, "s", "t"), format!("t({python}) -> Any"));
}

/// Checks the type of one optional parameter.
#[expect(clippy::needless_pass_by_value, reason = "so that a case is written in place")]
#[track_caller]
fn check_type(schema: Value, typescript: &str, python: &str) {
    let input = json!({"properties": {"p": schema}});
    check(input, &format!("args?: {{ p?: {typescript} }}"), &format!("*, p: {python} = ..."));
}

#[test]
fn objects() {
    check(json!({"type": "object"}), "", "");
    check(json!({"type": "object", "properties": {}, "additionalProperties": false}), "", "");
    check(
        json!({"type": "object", "required": ["owner"], "properties": {
            "owner": {"type": "string"}, "size": {"type": "integer", "default": 5},
            "tags": {"type": "array", "items": {"type": "string"}},
            "deep": {"properties": {"x": {"type": ["string", "null"]}}}, "any": true}}),
        "args: { owner: string; size?: number; tags?: string[]; deep?: { x?: string | null }; any?: unknown }",
        "*, owner: str, size: int = 5, tags: list[str] = ..., \
         deep: {\"x\": NotRequired[str | None]} = ..., any: Any = ...",
    );
    let map = json!({"type": "object", "additionalProperties": {"type": "number"}});
    check_type(map.clone(), "Record<string, number>", "dict[str, float]");
    check(map, "args?: Record<string, number>", "args: dict[str, float] = {}, /");
    check_type(
        json!({"patternProperties": {"^x": {"type": "string"}, "^y": {"type": "boolean"}}}),
        "Record<string, string | boolean>",
        "dict[str, str | bool]",
    );
    check_type(
        json!({"properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "string"}}),
        "{ a?: null; [key: string]: unknown }",
        "{\"a\": NotRequired[None]}",
    );
    check(
        json!({"properties": {"page-size": {"type": "integer"}, "class": {}}, "required": ["class"]}),
        "args: { \"page-size\"?: number; class: unknown }",
        "args: {\"page-size\": NotRequired[int], \"class\": Any}, /",
    );
}

#[test]
fn required_names_without_a_schema() {
    check(json!({"required": ["id"]}), "args: { id: unknown }", "*, id: Any");
    let closed = json!({"properties": {"a": {}}, "required": ["b"], "additionalProperties": false});
    check(closed, "args?: { a?: unknown }", "*, a: Any = ...");
}

#[test]
fn choices() {
    let python = r#"Literal["x", 1] | None"#;
    check_type(json!({"enum": ["x", 1, null]}), r#""x" | 1 | null"#, python);
    check_type(json!({"const": true}), "true", "Literal[True]");
    check_type(json!({"enum": [0.5, 2]}), "0.5 | 2", "Literal[2] | float");
    check_type(
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        "string | null",
        "str | None",
    );
    check_type(json!({"type": "string", "nullable": true}), "string | null", "str | None");
    check_type(json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}), "number", "float");
    let texts = json!({"type": "string", "anyOf": [{"const": "a"}, {"const": "b"}]});
    check_type(texts, r#""a" | "b""#, r#"Literal["a", "b"]"#);
    check_type(json!({"anyOf": [{"type": "string"}, {}]}), "unknown", "Any");
    check_type(json!({"not": {"type": "string"}, "if": {}, "then": false}), "unknown", "Any");
    check_type(json!(false), "never", "Never");
    check_type(json!({"type": "banana"}), "unknown", "Any");
    let many: Vec<String> = (0..50).map(|n| format!("v{n}")).collect();
    let line = Typings::new(&json!({"properties": {"p": {"enum": many}}}), None);
    let line = line.signature(TypingsLanguage::TypeScript, "s", "t");
    assert!(line.ends_with("\"v19\" | string }): Promise<unknown>"), "{line}");
}

#[test]
fn all_of_is_one_object() {
    check(
        json!({"$defs": {"base": {"properties": {"id": {"type": "integer"}}}},
            "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"name": {"type": "string"}}}, {"required": ["id"]}]}),
        "args: { id: number; name?: string }",
        "*, id: int, name: str = ...",
    );
    check(
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        "args?: { a?: string; b?: string } & ({ a: unknown } | { b: unknown })",
        "*, a: str = ..., b: str = ...",
    );
    check(
        json!({"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "x"}, "n": {"type": "number"}}, "required": ["kind"]},
            {"type": "object", "properties": {"kind": {"const": "y"}}, "required": ["kind"]}]}),
        "args: { kind: \"x\"; n?: number } | { kind: \"y\" }",
        "*, kind: Literal[\"x\", \"y\"], n: float = ...",
    );
}

#[test]
fn lists() {
    check_type(json!({"type": "array"}), "unknown[]", "list[Any]");
    check_type(
        json!({"items": {"enum": ["a", "b"]}}),
        "(\"a\" | \"b\")[]",
        "list[Literal[\"a\", \"b\"]]",
    );
    let pair = json!({"prefixItems": [{"type": "number"}, {"type": "string"}]});
    check_type(pair, "[number, string]", "tuple[float, str]");
    let old = json!({"type": "array", "items": [{"type": "number"}], "additionalItems": {"type": "string"}});
    check_type(old, "[number, ...string[]]", "list");
}

#[test]
fn references() {
    check(
        json!({"$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}, "properties": {"n": {"$ref": "#/$defs/node"}}}),
        "args?: { n?: { next?: unknown } }",
        "*, n: {\"next\": NotRequired[dict]} = ...",
    );
    let outside = |to: &str| json!({"properties": {"p": {"$ref": to}}});
    for to in ["file:///etc/passwd", "https://example.com/s.json#/a", "#/nowhere", "other"] {
        check(outside(to), "args?: { p?: unknown }", "*, p: Any = ...");
    }
    for to in ["#/$defs/a%20b", "#anchor", "https://example.com/me#/$defs/a b", "#/definitions/old"]
    {
        let schema = json!({"$id": "https://example.com/me", "properties": {"p": {"$ref": to}},
            "$defs": {"a b": {"type": "string", "$anchor": "anchor"}}, "definitions": {"old": {"type": "string"}}});
        check(schema, "args?: { p?: string }", "*, p: str = ...");
    }
    // Definitions that refer only to themselves.
    let circular = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"},
        "c": {"anyOf": [{"$ref": "#/$defs/c"}, {"type": "string"}]}},
        "properties": {"p": {"$ref": "#/$defs/a"}, "q": {"$ref": "#/$defs/c"}}});
    check(circular, "args?: { p?: unknown; q?: string }", "*, p: Any = ..., q: str = ...");
}

#[test]
fn outputs_and_names() {
    let output = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let types = Typings::new(&json!({}), Some(&output));
    let line = |voice, name| types.signature(voice, "my-hub", name);
    assert_eq!(line(TypingsLanguage::TypeScript, "a.b"), "\"a.b\"(): Promise<{ ok?: boolean }>");
    assert_eq!(line(TypingsLanguage::TypeScript, "new"), "\"new\"(): Promise<{ ok?: boolean }>");
    assert_eq!(line(TypingsLanguage::Python, "a.b"), "a_b() -> {\"ok\": NotRequired[bool]}");
    assert_eq!(line(TypingsLanguage::Python, "import"), "_import() -> {\"ok\": NotRequired[bool]}");
    assert_eq!(line(TypingsLanguage::Bash, "a.b"), "mcp my-hub a.b");
    assert_eq!(line(TypingsLanguage::Bash, "it's"), r"mcp my-hub 'it'\''s'");
    let seen = Typings::new(&json!({}), None).with_observed(&output);
    assert_eq!(
        seen.signature(TypingsLanguage::TypeScript, "s", "t"),
        "t(): Promise</* observed */ { ok?: boolean }>"
    );
    assert_eq!(
        seen.signature(TypingsLanguage::Python, "s", "t"),
        "t() -> {\"ok\": NotRequired[bool]}  # observed"
    );
}

#[test]
fn flags_of_bash() {
    let input = json!({"required": ["id"], "properties": {"id": {"type": "integer"}, "all": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}}, "where": {"properties": {"x": {"type": "string"}}}}});
    let line = Typings::new(&input, None).signature(TypingsLanguage::Bash, "s", "t");
    assert_eq!(line, "mcp s t --id <number> [--all] [--tags <string[]>] [--where <json>]");
    let odd = Typings::new(&json!({"properties": {"a b": {"type": "string"}}}), None);
    assert_eq!(odd.signature(TypingsLanguage::Bash, "s", "t"), "mcp s t --json '{..}'");
}
