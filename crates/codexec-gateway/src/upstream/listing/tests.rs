use serde_json::json;

use super::*;

fn listing(tools: &[&str]) -> ToolListing {
    let mut listing = ToolListing::default();
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
    assert!(listing.add_page(&json!({ "tools": tools })));
    listing
}

#[track_caller]
fn check(listing: &ToolListing, name: &str, expected: &str) {
    let actual = match listing.lookup(name) {
        ToolLookup::Found(tool) => tool.name.clone(),
        ToolLookup::Withheld(tool, why) => format!("{} {why:?}", tool.name),
        ToolLookup::Ambiguous(names) => names.join(" or "),
        ToolLookup::Missing => "nothing".to_owned(),
    };
    assert_eq!(actual, expected, "{name}");
}

#[test]
fn tools_are_found_by_name_then_by_alias() {
    let listing = listing(&["get-issue", "get_issue", "list.all", "a/b", "c d", "läuft"]);
    check(&listing, "get-issue", "get-issue");
    check(&listing, "get_issue", "get_issue");
    check(&listing, "list_all", "list.all");
    check(&listing, "a_b", "a/b");
    check(&listing, "c_d", "c d");
    check(&listing, "läuft", "läuft");
    check(&listing, "l_uft", "läuft");
    check(&listing, "other", "nothing");
    assert_eq!(listing.nearest("get_isue"), ["get-issue", "get_issue"]);
}

#[test]
fn an_alias_of_several_tools_is_ambiguous() {
    let listing = listing(&["get-issue", "get.issue", "a__b"]);
    check(&listing, "get_issue", "get-issue or get.issue");
    check(&listing, "get.issue", "get.issue");
    check(&listing, "a__b", "a__b");
}

/// A tool that waits for approval is not reachable by another name, and its name reaches no other
/// tool.
#[test]
fn up_4_a_withheld_tool_is_not_mistaken_for_another() {
    let all = listing(&["get-issue", "get.issue", "put", "old-name", "old.name"]);
    let held = [("get-issue", HoldReason::Changed), ("put", HoldReason::New)];
    let held = held.map(|(name, why)| (name.to_owned(), why)).into();
    let off =
        ServerOptions { disabled_tools: vec!["old-*".to_owned()], ..ServerOptions::default() };
    let seen = all.visible_to_user(&off, &held);
    let names: Vec<&str> = seen.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["get.issue", "old.name"]);
    check(&seen, "get-issue", "get-issue Held(Changed)");
    check(&seen, "get_issue", "get-issue Held(Changed)");
    check(&seen, "get.issue", "get.issue");
    check(&seen, "put", "put Held(New)");
    check(&seen, "old-name", "old-name SwitchedOff");
    // A switched-off tool does not make the alias ambiguous.
    check(&seen, "old_name", "old.name");
}

#[test]
fn an_invalid_page_is_a_problem() {
    let mut listing = ToolListing::default();
    assert!(listing.add_page(&json!({"tools": "none"})));
    assert_eq!(listing.problems, ["a page of its list has no `tools`"]);
}

#[test]
fn the_ttl_of_a_list_is_bounded() {
    let ttl = |ttl: Value| {
        let mut listing = ToolListing::default();
        listing.add_page(&json!({"tools": [], "ttlMs": ttl}));
        listing.ttl.map(|ttl| ttl.as_millis())
    };
    assert_eq!(ttl(json!(5_000)), Some(5_000));
    assert_eq!(ttl(json!(0)), Some(1_000));
    assert_eq!(ttl(json!(u64::MAX)), Some(86_400_000));
    assert_eq!(ttl(json!("soon")), None);
    assert_eq!(ttl(json!(-1)), None);
}
