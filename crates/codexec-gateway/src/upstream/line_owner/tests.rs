use super::*;

#[test]
fn the_owner_of_a_broken_line_is_found() {
    let check = |head: &str, expected: LineOwner| {
        assert_eq!(find_line_owner(head.as_bytes()), expected, "{head}");
    };
    check(r#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"te"#, LineOwner::Request(12));
    check(r#"{ "id" : 3 , "#, LineOwner::Request(3));
    check(r#"{"result":{"id":3,"text":"\"id\":4,"#, LineOwner::Unknown);
    check(r#"{"result":{"a":[1,{"id":3}]},"id":5}"#, LineOwner::Request(5));
    check(r#"{"id":"3","result""#, LineOwner::Server);
    check(r#"{"method":"notifications/message","params":{"#, LineOwner::Server);
    check(r#"{"id":12"#, LineOwner::Unknown);
    check("", LineOwner::Unknown);
    check("xxxxxx", LineOwner::Unknown);
}
