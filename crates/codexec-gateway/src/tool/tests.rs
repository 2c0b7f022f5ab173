use codexec_schema::Checker;
use serde_json::json;

use super::*;

#[test]
fn shown_texts_have_no_hidden_characters() {
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
    assert_eq!(tool.parameters, [("p".to_owned(), "ab".to_owned())]);
    assert_eq!(tool.raw.to_value().expect("JSON"), raw);
}

/// THREAT[TXT-2]: every kind of hidden character, in every place a server can write one.
#[test]
fn txt_2_no_hidden_character_is_left_anywhere_in_a_schema() {
    let kinds = [
        ("ANSI escape", "\u{1b}[8m"),
        ("C1 control", "\u{9b}"),
        ("zero width", "\u{200b}\u{200d}\u{feff}"),
        ("bidirectional", "\u{202e}\u{2066}\u{61c}"),
        ("tag", "\u{e0041}"),
        ("variation selector", "\u{fe0f}\u{e0101}"),
        ("line separator", "\u{2028}\u{2029}"),
        ("filler", "\u{3164}\u{115f}\u{2800}"),
        ("invisible operator", "\u{2062}\u{ad}\u{34f}"),
        ("format control", "\u{13430}\u{1bca0}\u{1d173}"),
        ("noncharacter", "\u{fdd0}\u{ffff}\u{10fffe}"),
    ];
    for (kind, hidden) in kinds {
        let bad = format!("a{hidden}b");
        let schema = json!({
            "title": bad, "$comment": bad, "required": [bad],
            "properties": {&bad: {"description": bad, "enum": [bad], "const": bad, "default": {&bad: [bad]},
                "examples": [bad], "format": bad, "items": {"title": bad}}},
            "x-custom": {&bad: bad},
        });
        // A schema that no arguments could be checked against.
        let unusable = json!({"properties": {"p": {"pattern": bad}}, "$defs": {&bad: {"$ref": format!("#/$defs/{bad}")}}});
        let raw = json!({"name": "t", "title": bad, "description": bad, "inputSchema": schema, "outputSchema": unusable});
        let tool = Tool::read(&raw).expect("a tool");
        let mut shown = vec![
            tool.description.clone(),
            tool.title.clone().expect("a title"),
            tool.input_schema().to_string(),
            tool.output_schema().expect("a schema").to_string(),
        ];
        for voice in [TypingsLanguage::TypeScript, TypingsLanguage::Python, TypingsLanguage::Bash] {
            shown.push(tool.signature(voice, "s", None));
            shown.push(tool.types(None).declaration(voice, "s", "t", &tool.description));
        }
        let check = |args: &serde_json::Value| {
            crate::arguments::check(&Checker::default(), tool.raw_input_schema(), args)
        };
        let wrong = check(&json!({}));
        shown.push(wrong.expect_err("one is missing"));
        for text in shown {
            assert!(
                !text.contains(|c| hidden.contains(c) && c != '[' && c != '8' && c != 'm'),
                "{kind}: {text:?}"
            );
        }
        // The server's own text is what is hashed and checked against.
        assert_eq!(tool.raw.to_value().expect("JSON"), raw);
        assert_eq!(check(&json!({&bad: bad})), Ok(()));
    }
}

#[test]
fn of_two_equal_looking_names_the_first_stays() {
    let properties = json!({"a": {"type": "string"}, "a\u{200b}": {"type": "number"}});
    let tool = Tool::read(&json!({"name": "t", "inputSchema": {"properties": properties}}));
    let line = tool.expect("a tool").signature(TypingsLanguage::TypeScript, "s", None);
    assert_eq!(line, "t(args?: { a?: string }): Promise<unknown>");
}

#[test]
fn only_an_invalid_name_rejects_a_tool() {
    let check =
        |raw: Value| Tool::read(&raw).map(|tool| tool.input_schema().clone()).map_err(|_| ());
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
