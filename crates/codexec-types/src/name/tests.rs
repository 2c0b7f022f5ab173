use super::*;

#[test]
fn only_valid_server_names_are_accepted() {
    for good in ["github", "my-server", "a_b", "A9", &"x".repeat(64)] {
        assert!(ServerName::new(good).is_ok(), "{good}");
    }
    for bad in ["", "../../evil", "a/b", "a b", "a.b", "ü", "a\0", &"x".repeat(65)] {
        assert!(ServerName::new(bad).is_err(), "{bad}");
    }
}
