use super::*;

#[test]
fn a_row_names_a_test_or_a_module() {
    assert!(is_within("leaks::a_thousand", "leaks"));
    assert!(is_within("leaks::a_thousand", "leaks::a_thousand"));
    assert!(!is_within("leaks_more::a_thousand", "leaks"));
    assert!(!is_within("seed::leaks::a_thousand", "leaks"));
}

#[test]
fn rows_without_tests_are_found() {
    let unused = find_unused(&["types::a", "leaks::b"]);
    assert!(unused.contains(&"durability"));
    assert!(!unused.contains(&"types") && !unused.contains(&"leaks"));
}

#[test]
fn what_guards_the_host_runs_as_both_users() {
    for module in ["attacks::x", "escape::x", "files::x", "kept_workers::x", "limits::x"] {
        assert!(!is_for_one_user(module), "{module}");
    }
}
