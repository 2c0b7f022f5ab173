use super::*;

#[tokio::test]
async fn split_characters_are_joined() {
    let (mut sender, receiver) = pipe::pipe().unwrap();
    let mut output = OutputPipe::new(receiver);
    let bytes = "aé€😀z".as_bytes();
    let mut text = String::new();
    for byte in bytes {
        tokio::io::AsyncWriteExt::write_all(&mut sender, &[*byte]).await.unwrap();
        text.push_str(&output.read().await.0);
    }
    assert_eq!(text, "aé€😀z");
}

#[tokio::test]
async fn available_text_is_read_to_its_end_without_waiting() {
    use tokio::io::AsyncWriteExt as _;
    let (mut sender, receiver) = pipe::pipe().unwrap();
    let mut output = OutputPipe::new(receiver);
    assert_eq!(output.read_available(), (String::new(), 0));
    let long = "x".repeat(SHORT_READ_BYTES) + "é";
    sender.write_all(long.as_bytes()).await.unwrap();
    sender.write_all(b"\xe2\x82").await.unwrap();
    assert_eq!(output.read_available(), (long.clone(), long.len() as u64 + 2));
    assert!(!output.has_ended());
    sender.write_all(b"\xac").await.unwrap();
    drop(sender);
    assert_eq!(output.read_available(), ("€".to_owned(), 1));
    assert_eq!(output.read_available(), (String::new(), 0));
    assert!(output.has_ended());
}

#[test]
fn only_an_incomplete_character_is_held_back() {
    assert_eq!(complete_length(b"ab"), 2);
    assert_eq!(complete_length(b"a\xf0\x9f\x98"), 1);
    assert_eq!(complete_length(b"a\xff\xfe"), 3);
    assert_eq!(complete_length(b"a\xe2("), 3);
    assert_eq!(complete_length(b"\x80\x80\x80"), 3);
}
