use serde_json::json;

use super::*;

#[track_caller]
fn check(before: Option<&Value>, after: &Value, expected: &[&str]) {
    let before = before.map(Json::from_value);
    let lines = find_differences(before.as_ref(), Some(&Json::from_value(after)));
    let actual = lines.iter().map(|line| {
        let sign = if line.sign == DiffSign::Added { '+' } else { '-' };
        format!("{sign} {}{}", line.text, if line.has_hidden { " (hidden)" } else { "" })
    });
    assert_eq!(actual.collect::<Vec<_>>(), expected);
}

#[test]
fn only_changed_fields_and_lines_are_shown() {
    let before = json!({"name": "a", "description": "one\ntwo\nthree",
        "inputSchema": {"type": "object", "required": ["x"]}});
    let after = json!({"name": "a", "description": "one\n2\nthree",
        "inputSchema": {"required": ["x", "y"], "type": "object"}, "_meta": {"n": 1, "e": {}}});
    check(Some(&before), &before, &[]);
    let lines = [
        "- description: two",
        "+ description: 2",
        "+ inputSchema.required[1]: y",
        "+ _meta.n: 1",
        "+ _meta.e: {}",
    ];
    check(Some(&before), &after, &lines);
    check(None, &json!({"name": "a"}), &["+ name: a"]);
}

#[test]
fn up_4_nothing_hides_in_a_difference() {
    let before = json!({"name": "a", "description": "plain"});
    let after = json!({"name": "a", "description": "plain\u{200b}\u{e0041}\u{1b}[2K\r"});
    let added = "+ description: plain\\u{200b}\\u{e0041}\\u{1b}[2K\\u{d} (hidden)";
    check(Some(&before), &after, &["- description: plain", added]);
    let key = json!({"name": "a", "description": "plain", "x\u{202e}y": 1});
    check(Some(&before), &key, &["+ x\\u{202e}y: 1 (hidden)"]);
}
