use super::*;

#[test]
fn a_frame_is_its_length_and_its_json() {
    let bytes = FromGuest::Compiled.encode().expect("short");
    assert_eq!(bytes, b"\x0a\0\0\0\"compiled\"");
    let header = [bytes[0], bytes[1], bytes[2], bytes[3]];
    assert_eq!(frame_length(header), Ok(bytes.len() - FRAME_HEADER_BYTES));
    assert_eq!(FromGuest::decode(&bytes[FRAME_HEADER_BYTES..]), Ok(FromGuest::Compiled));
}

#[test]
fn brg_1_a_frame_over_the_limit_is_refused_by_both_sides() {
    let text = "x".repeat(MAX_FRAME_BYTES);
    let bytes = MAX_FRAME_BYTES + r#"{"progress":""}"#.len();
    assert_eq!(FromGuest::Progress(text).encode(), Err(FrameError::TooLong { bytes }));
    let length = u32::try_from(MAX_FRAME_BYTES).expect("fits") + 1;
    assert_eq!(
        frame_length(length.to_le_bytes()),
        Err(FrameError::TooLong { bytes: MAX_FRAME_BYTES + 1 })
    );
}

#[test]
fn brg_1_a_guest_cannot_forge_what_only_the_host_knows() {
    for forged in [
        r#"{"stopped":"wall"}"#,
        r#""cancelled""#,
        r#"{"threw":{"code":"TIMEOUT","message":"","at":null,"stack":null}}"#,
        r#"{"ask":{"id":1,"ask":{"tool":{"server":"a","tool":"b","args":{},"allowed":true}}}}"#,
        r#"{"returned":1} {"returned":2}"#,
        "",
        "\u{0}",
    ] {
        assert_eq!(FromGuest::decode(forged.as_bytes()), Err(FrameError::Malformed), "{forged}");
    }
}

#[test]
fn ord_1_excess_search_words_are_not_kept_in_memory() {
    let words = vec![r#""a""#; 1_000_000].join(",");
    let frame = format!(r#"{{"ask":{{"id":1,"ask":{{"discover":{{"words":[{words}]}}}}}}}}"#);
    let Ok(FromGuest::Ask { ask: Ask::Discover { words }, .. }) =
        FromGuest::decode(frame.as_bytes())
    else {
        panic!("an ask");
    };
    assert_eq!(words.len(), crate::bounds::MAX_WORDS + 1);
}
