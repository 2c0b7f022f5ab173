use serde_json::json;

use super::*;

#[test]
fn tools_are_found_by_name_then_by_alias() {
    let mut listing = Listing::default();
    let page =
        json!({"tools": [{"name": "get-issue"}, {"name": "get_issue"}, {"name": "list.all"}]});
    assert!(listing.add_page(&page));
    let find = |name: &str| listing.find(name).map(|tool| tool.name.clone());
    assert_eq!(find("get-issue").as_deref(), Some("get-issue"));
    assert_eq!(find("get_issue").as_deref(), Some("get_issue"));
    assert_eq!(find("list_all").as_deref(), Some("list.all"));
    assert_eq!(find("other"), None);
    assert_eq!(listing.nearest("get_isue"), ["get_issue", "get-issue"]);
}

#[test]
fn a_page_that_is_none_is_a_problem() {
    let mut listing = Listing::default();
    assert!(listing.add_page(&json!({"tools": "none"})));
    assert_eq!(listing.problems, ["a page of its list has no `tools`"]);
}
