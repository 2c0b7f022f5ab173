use serde_json::json;

use super::*;

#[test]
fn invalid_characters_become_the_replacement_character() {
    for (line, expected) in [
        (br#""plain""#.as_slice(), json!("plain")),
        (br#""\ud83d\ude00""#, json!("😀")),
        (br#""\ud83d""#, json!("\u{fffd}")),
        (br#""\ude00\ud83dx""#, json!("\u{fffd}\u{fffd}x")),
        (br#""\\ud83d""#, json!("\\ud83d")),
        (br#""\\\ud83d \ud83d""#, json!("\\\u{fffd} \u{fffd}")),
        (br#""\ud83d\ud83d\ude00""#, json!("\u{fffd}😀")),
        (b"\"\xff\xfe\"", json!("\u{fffd}\u{fffd}")),
        (b"[\"\xff\",\"\\ud800\"]", json!(["\u{fffd}", "\u{fffd}"])),
    ] {
        assert_eq!(parse_lenient_json(line).expect("json"), expected);
    }
    assert!(parse_lenient_json(b"{not json").is_err());
}
