use super::*;

#[test]
fn the_owner_of_a_broken_line_is_found() {
    let check =
        |head: &str, expected: Owner| assert_eq!(owner(head.as_bytes()), expected, "{head}");
    check(r#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"te"#, Owner::Request(12));
    check(r#"{ "id" : 3 , "#, Owner::Request(3));
    check(r#"{"result":{"id":3,"text":"\"id\":4,"#, Owner::Unknown);
    check(r#"{"result":{"a":[1,{"id":3}]},"id":5}"#, Owner::Request(5));
    check(r#"{"id":"3","result""#, Owner::Server);
    check(r#"{"method":"notifications/message","params":{"#, Owner::Server);
    check(r#"{"id":12"#, Owner::Unknown);
    check("", Owner::Unknown);
    check("xxxxxx", Owner::Unknown);
}
