use serde_json::json;

use super::*;

#[track_caller]
fn check(arguments: Value, expected: &str) {
    let Value::Object(map) = arguments else { panic!("an object") };
    let mut fields = Fields::new(map);
    let read = (|| {
        let code = fields.required_text("code")?;
        let language = fields.choice("language", &[("typescript", 1), ("javascript", 2)])?;
        let timeout = fields.number("timeout_ms", 1..=300_000)?;
        let tools = fields.texts("allowed_tools")?;
        fields.finish()?;
        Ok::<_, FieldError>(format!("{code} {language:?} {timeout:?} {tools:?}"))
    })();
    assert_eq!(read.unwrap_or_else(|error| format!("error: {error}")), expected);
}

#[test]
fn valid_arguments_are_parsed() {
    check(json!({"code": "1"}), "1 None None None");
    check(
        json!({"code": "1", "timeout_ms": 5.0, "language": "javascript", "allowed_tools": []}),
        "1 Some(2) Some(5) Some([])",
    );
    check(json!({"code": "1", "timeout_ms": null}), "1 None None None");
}

#[test]
fn every_error_names_the_field_and_what_is_allowed() {
    check(json!({}), "error: code: it is missing; it must be a string");
    check(json!({"code": 5}), "error: code: 5 is not allowed; it must be a string");
    check(
        json!({"code": "1", "language": "cobol"}),
        "error: language: \"cobol\" is not allowed; it must be one of typescript, javascript",
    );
    for bad in [json!(0), json!(300_001), json!(1.5), json!("9"), json!(-1)] {
        check(
            json!({"code": "1", "timeout_ms": bad}),
            &format!(
                "error: timeout_ms: {bad} is not allowed; it must be a whole number from 1 to 300000"
            ),
        );
    }
    check(
        json!({"code": "1", "allowed_tools": ["a", 1]}),
        "error: allowed_tools: 1 is not allowed; it must be an array of strings",
    );
    check(
        json!({"code": "1", "cod": 1, "x": 2}),
        "error: cod, x: unknown; allowed fields: code, language, timeout_ms, allowed_tools",
    );
}
