use super::*;

const PAGE: &str = "text\n```text cpython\n# no network\ntest_a.B.*\ntest_c.D.e\n# on purpose\n\
                    test_f\n```\n# not this\ntest_g\n";

#[test]
fn a_test_matches_by_name_or_prefix() {
    let known = KnownDifferences::parse(PAGE).unwrap();
    let names = ["test_a.B.x", "test_a.C.x", "test_c.D.e", "test_c.D.ee", "test_f", "test_g"];
    assert_eq!(
        names.map(|name| known.reason(name)),
        [Some("no network"), None, Some("no network"), None, Some("on purpose"), None]
    );
}

#[test]
fn a_name_needs_a_reason() {
    assert!(KnownDifferences::parse("```text cpython\ntest_a\n```\n").is_err());
}
