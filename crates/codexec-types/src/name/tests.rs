use super::*;

#[test]
fn only_plain_names_get_in() {
    for good in ["github", "my-server", "a_b", "A9", &"x".repeat(64)] {
        assert!(ServerName::new(good).is_ok(), "{good}");
    }
    for bad in ["", "../../evil", "a/b", "a b", "a.b", "ü", "a\0", &"x".repeat(65)] {
        assert!(ServerName::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_nearest_names_come_first() {
    let names = ["get_issue", "list_issues", "create_issue", "delete_repo"];
    assert_eq!(nearest("get_isue", names.into_iter(), 1), ["get_issue"]);
    assert_eq!(nearest("issue", names.into_iter(), 1), ["create_issue"]);
    assert!(nearest("zzzzzzzzz", names.into_iter(), 3).is_empty());
}
