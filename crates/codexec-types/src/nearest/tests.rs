use super::*;

const NAMES: [&str; 6] =
    ["get_issue", "list_issues", "create_issue", "delete_repo", "fetch-url", "getUserName"];

#[track_caller]
fn check(wanted: &str, expected: &[&str]) {
    let near = find_nearest_names(wanted, NAMES.into_iter(), 1);
    assert_eq!(near, expected, "{wanted}");
}

#[test]
fn typos_and_other_spellings_are_recognised() {
    check("get_isue", &["get_issue"]);
    check("gte_issue", &["get_issue"]);
    check("getIssue", &["get_issue"]);
    check("GET-ISSUE", &["get_issue"]);
    check("get_user_name", &["getUserName"]);
    check("fetch_url", &["fetch-url"]);
}

#[test]
fn words_may_be_in_another_order_or_missing() {
    check("issue_get", &["get_issue"]);
    check("issue_create", &["create_issue"]);
    check("issue", &["get_issue"]);
    check("repo", &["delete_repo"]);
    check("issues_list_all", &["list_issues"]);
}

#[test]
fn a_name_unlike_all_others_has_no_match() {
    check("zzzzzzzzz", &[]);
    check("", &[]);
    check("___", &[]);
    check(&"get_issue".repeat(100_000), &[]);
}

#[test]
fn the_order_does_not_depend_on_the_order_of_the_names() {
    let forward = find_nearest_names("isue", NAMES.into_iter(), 3);
    assert_eq!(find_nearest_names("isue", NAMES.into_iter().rev(), 3), forward);
}
