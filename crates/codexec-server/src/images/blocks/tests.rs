use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

/// Returns the value that stays, and the number of images.
fn take(value: &str) -> (String, usize) {
    let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n and the rest");
    let value = Json::parse(value.replace("PNG", &png)).expect("json");
    let mut images = Images::default();
    let rest = without_blocks(&value, &mut images);
    (rest.map_or("unchanged".to_owned(), |rest| rest.text().to_owned()), images.shown.len())
}

#[test]
fn images_leave_the_value() {
    let (rest, count) =
        take(r#"{"z":[{"type":"image","data":"PNG","mimeType":"image/png"}],"a":1}"#);
    let expected =
        r#"{"z":[{"type":"image","data":"[image 1 of this reply]","mimeType":"image/png"}],"a":1}"#;
    assert_eq!((rest.as_str(), count), (expected, 1));
    let (rest, count) = take(r#"{"uri":"a://b","mimeType":"image/png","blob":"PNG"}"#);
    assert!(rest.contains("[image 1 of this reply]") && count == 1, "{rest}");
}

#[test]
fn data_that_cannot_be_shown_leaves_the_value_as_well() {
    let (rest, count) = take(r#"[{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}]"#);
    assert!(rest.contains("[8 characters of base64, not shown]") && count == 0, "{rest}");
    let (rest, count) = take(r#"[{"type":"image","data":"PNG","mimeType":"image/gif"}]"#);
    assert!(rest.contains("characters of base64, not shown]") && count == 0, "{rest}");
}

#[test]
fn other_values_stay() {
    for value in [
        r#"{"type":"image","data":{"a":1},"mimeType":"image/png"}"#,
        r#"{"type":"image","name":"x"}"#,
        r#"["image", "audio"]"#,
        r#"{"type":"text","text":"an \"image\""}"#,
    ] {
        assert_eq!(take(value), ("unchanged".to_owned(), 0), "{value}");
    }
}
