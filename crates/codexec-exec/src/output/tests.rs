use super::*;

#[tokio::test]
async fn split_characters_are_joined() {
    let (mut sender, receiver) = pipe::pipe().unwrap();
    let mut output = OutputPipe::new(receiver).unwrap();
    let bytes = "aé€😀z".as_bytes();
    let mut text = String::new();
    for byte in bytes {
        tokio::io::AsyncWriteExt::write_all(&mut sender, &[*byte]).await.unwrap();
        text.push_str(&output.read().await.0);
    }
    assert_eq!(text, "aé€😀z");
}

#[test]
fn only_an_incomplete_character_is_held_back() {
    assert_eq!(complete_length(b"ab"), 2);
    assert_eq!(complete_length(b"a\xf0\x9f\x98"), 1);
    assert_eq!(complete_length(b"a\xff\xfe"), 3);
    assert_eq!(complete_length(b"a\xe2("), 3);
    assert_eq!(complete_length(b"\x80\x80\x80"), 3);
}
