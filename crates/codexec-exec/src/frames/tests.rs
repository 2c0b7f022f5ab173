use super::*;

#[test]
fn ord_1_the_id_of_an_oversized_ask_is_read_from_its_first_bytes() {
    let head = br#"{"ask":{"id":417,"ask":{"tool":{"server":"aaaaaaaaaa"#;
    assert_eq!(id_of_long_ask(head), Some(417));
    assert_eq!(id_of_long_ask(br#"{"ask":{"ask":1}}"#), None);
    assert_eq!(id_of_long_ask(br#"{"ask":{"id":99999999999,"#), None);
}
