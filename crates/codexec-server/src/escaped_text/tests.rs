use super::*;

#[track_caller]
fn check(name: &str, expected: &str) {
    assert_eq!(escape_name(name), expected);
}

#[test]
fn usual_names_are_unchanged() {
    for name in ["plot.png", "sub/Ünïcode 数据.csv", "a b (1).txt", "\u{1f600}.txt", ""] {
        check(name, name);
    }
}

#[test]
fn invisible_characters_are_escaped() {
    check("a\n[limits]\nb", "a\\n[limits]\\nb");
    check("a\r\t\0\u{1b}[2K", "a\\r\\t\\u{0}\\u{1b}[2K");
    check("invoice\u{202e}gpj.exe", "invoice\\u{202e}gpj.exe");
    check("a\u{200b}b\u{feff}\u{2028}", "a\\u{200b}b\\u{feff}\\u{2028}");
    check("tag\u{e0041}\u{e007f}", "tag\\u{e0041}\\u{e007f}");
    check("\u{85}\u{a0}", "\\u{85}\\u{a0}");
    // Otherwise an escape could be forged.
    check("a\\nb", "a\\\\nb");
}

#[test]
fn a_long_name_keeps_its_ends() {
    let name = format!("{}{}", "x".repeat(500), ".tar.gz");
    let shown = escape_name(&name);
    assert_eq!(shown.chars().count(), 121);
    assert!(shown.starts_with("xxxx") && shown.ends_with(".tar.gz"), "{shown}");
    // However long each character is when escaped.
    assert!(escape_name(&"\u{e0041}".repeat(5_000)).chars().count() <= 121);
}

#[test]
fn escaped_json_has_the_same_value() {
    let value = serde_json::json!({"a\u{202e}b": ["\u{e0041}\u{7f}\n\\", "ä😀"]});
    let text = escape_json(&value.to_string());
    assert_eq!(text, r#"{"a\u202eb":["\udb40\udc41\u007f\n\\","ä😀"]}"#);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("json"), value);
}
