use super::*;

#[tokio::test]
async fn characters_that_come_in_pieces_are_whole() {
    let (mut sender, receiver) = pipe::pipe().unwrap();
    let mut output = Output::new(receiver).unwrap();
    let bytes = "aé€😀z".as_bytes();
    let mut text = String::new();
    for byte in bytes {
        tokio::io::AsyncWriteExt::write_all(&mut sender, &[*byte]).await.unwrap();
        text.push_str(&output.read().await.0);
    }
    assert_eq!(text, "aé€😀z");
}

#[test]
fn only_a_beginning_of_a_character_is_held_back() {
    assert_eq!(whole_characters(b"ab"), 2);
    assert_eq!(whole_characters(b"a\xf0\x9f\x98"), 1);
    assert_eq!(whole_characters(b"a\xff\xfe"), 3);
    assert_eq!(whole_characters(b"a\xe2("), 3);
    assert_eq!(whole_characters(b"\x80\x80\x80"), 3);
}
