use serde_json::json;

use super::*;

#[track_caller]
fn check(result: Value, expected: Result<Value, &str>) {
    assert_eq!(
        unwrap_result(result).map_err(|err| err.to_string()),
        expected.map_err(str::to_owned)
    );
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[test]
fn structured_content_comes_first() {
    let content = json!([{"type": "text", "text": "x"}]);
    check(json!({"content": content, "structuredContent": {"a": 1}}), Ok(json!({"a": 1})));
    check(json!({"content": content, "structuredContent": null}), Ok(json!("x")));
}

#[test]
fn a_single_text_is_parsed_if_it_is_json() {
    check(text(" {\"a\": [1]} "), Ok(json!({"a": [1]})));
    check(text("42"), Ok(json!(42)));
    check(text("null"), Ok(Value::Null));
    check(text("\"quoted\""), Ok(json!("\"quoted\"")));
    check(text("{broken"), Ok(json!("{broken")));
    check(text("1.2.3"), Ok(json!("1.2.3")));
    check(text("007"), Ok(json!("007")));
    check(text("123456789012345678901234567890"), Ok(json!("123456789012345678901234567890")));
    check(text(""), Ok(json!("")));
}

#[test]
fn other_blocks_are_unchanged() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "AA=="});
    check(json!({"content": [image]}), Ok(image.clone()));
    let both = json!([{"type": "text", "text": "see"}, image]);
    check(json!({ "content": both }), Ok(both.clone()));
    let link = json!({"type": "resource_link", "uri": "file:///etc/passwd", "name": "x"});
    check(json!({"content": [link]}), Ok(link.clone()));
    check(json!({"content": []}), Ok(Value::Null));
    check(json!({"content": "odd"}), Ok(json!("odd")));
    check(json!(7), Ok(json!(7)));
}

#[test]
fn errors_are_returned_as_errors() {
    let mut failed = text("no such row");
    failed["isError"] = json!(true);
    check(failed, Err("no such row"));
    check(json!({"isError": true}), Err("the tool failed and did not say why"));
    check(json!({"isError": "yes", "content": []}), Ok(Value::Null));
    let unfinished = json!({"resultType": "input_required"});
    check(unfinished, Err("the tool asks for input, which is not supported yet"));
}
