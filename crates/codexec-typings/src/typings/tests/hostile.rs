//! THREAT[TXT-1]: hostile schemas.

use super::*;

/// Returns everything that is written for a schema, and checks its bounds.
#[track_caller]
fn write_all(input: &Value) -> Vec<String> {
    let types = Typings::new(input, Some(input));
    let mut texts = Vec::new();
    for voice in [TypingsLanguage::TypeScript, TypingsLanguage::Python, TypingsLanguage::Bash] {
        let line = types.signature(voice, "s", "t");
        assert!(!line.contains('\n'), "{line}");
        texts.push(line);
        texts.push(types.declaration(voice, "s", "t", "*/ \"\"\" \\"));
    }
    for text in &texts {
        assert!(text.len() <= crate::detail::BUDGET_BYTES, "{}", text.len());
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
    texts
}

#[test]
fn txt_1_deep_wide_and_long_schemas_are_bounded() {
    // Deeper JSON cannot be parsed.
    let (open, close) = (r#"{"properties":{"p":"#, "}}");
    let deep = format!("{}{{}}{}", open.repeat(60), close.repeat(60));
    write_all(&serde_json::from_str(&deep).expect("JSON"));
    let wide: serde_json::Map<String, Value> =
        (0..20_000).map(|n| (format!("p{n}"), json!({"description": "d".repeat(50)}))).collect();
    let names: Vec<&String> = wide.keys().collect();
    write_all(&json!({"properties": wide, "required": names}));
    write_all(&json!({"properties": {"x".repeat(1 << 20): {"enum": ["y".repeat(1 << 20)]}}}));
    let choices: Vec<Value> =
        (0..5_000).map(|n| json!({"properties": {format!("c{n}"): {}}})).collect();
    write_all(&json!({"anyOf": choices, "oneOf": choices, "allOf": choices}));
}

#[test]
fn txt_1_references_that_multiply_are_read_once() {
    let link = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        let both =
            json!({"properties": {"a": next, "b": next, "c": {"anyOf": [next, {"items": next}]}}});
        (format!("d{n}"), both)
    };
    let chain: serde_json::Map<String, Value> = (0..200).map(link).collect();
    let start = json!({"$ref": "#/$defs/d0"});
    write_all(&json!({"$defs": chain, "properties": {"p": start}}));
    write_all(&json!({"$defs": chain, "allOf": [start, {"properties": {"q": start}}]}));
    let knot = |n: usize| {
        let all: Vec<Value> = (0..20).map(|m| json!({"$ref": format!("#/$defs/k{m}")})).collect();
        (format!("k{n}"), json!({"allOf": all, "anyOf": all}))
    };
    let knots: serde_json::Map<String, Value> = (0..20).map(knot).collect();
    write_all(&json!({"$defs": knots, "$ref": "#/$defs/k0"}));
}

#[test]
fn txt_1_no_text_breaks_out_of_a_comment_or_string() {
    let hostile = "*/ }; evil(); /* \"\"\"\nimport os\r\n'''#\\\u{2028}\u{2029}\u{85}\u{202e}\u{200b}*\u{200b}/\u{e0041}";
    let input = json!({"required": [hostile], "properties": {
        hostile: {"enum": [hostile], "description": hostile, "format": hostile, "pattern": hostile, "default": hostile},
        "plain": {"type": "string", "description": hostile, "default": hostile, "examples": [hostile]},
    }});
    for text in write_all(&input) {
        assert!(!text.contains(['\u{2028}', '\u{2029}', '\u{202e}', '\u{200b}', '\u{e0041}']));
        // The words may be in a comment or in quotes, but not on a line of their own.
        assert!(text.lines().all(|line| !line.trim_start().starts_with("import")), "{text}");
    }
}
