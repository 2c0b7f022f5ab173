use super::*;
use crate::ToolPattern;

fn servers(names: &[&str]) -> ToolFilter {
    ToolFilter::only(names.iter().map(|name| ToolPattern::server(name)).collect())
}

fn reach(callable: &[&str], view: ToolView, policy: &[&str], outer: Option<&Reach>) -> Reach {
    Reach::new(servers(callable), Grants::default(), view, &servers(policy), outer)
}

/// Returns which of three servers a filter allows.
fn allowed(filter: &ToolFilter) -> Vec<&'static str> {
    ["git", "mail", "time"].into_iter().filter(|name| filter.allows_server(name)).collect()
}

/// Returns the callable, the visible, and the named servers of a reach.
fn parts(reach: &Reach) -> [Vec<&'static str>; 3] {
    [reach.callable(), reach.visible(), reach.named_in_guest()].map(allowed)
}

#[test]
fn code_sees_what_it_may_call_unless_the_request_has_another_view() {
    let plain = reach(&["git"], ToolView::Callable, &["git", "mail"], None);
    assert_eq!(parts(&plain), [["git"], ["git"], ["git"]]);
    let wide = reach(&["git"], ToolView::WholePolicy, &["git", "mail"], None);
    assert_eq!(parts(&wide), [vec!["git"], vec!["git", "mail"], vec!["git"]]);
    let view = ToolView::Discovery(servers(&["mail", "time"]));
    let discovery = reach(&["git", "mail"], view, &["git", "mail", "time"], None);
    assert_eq!(parts(&discovery), [vec!["mail"], vec!["mail", "time"], vec!["mail", "time"]]);
}

#[test]
fn ses_7_inner_code_reaches_no_more_than_outer_code() {
    let all = ["git", "mail", "time"];
    let outers = [
        reach(&["git", "mail"], ToolView::Callable, &all, None),
        reach(&["git", "mail"], ToolView::WholePolicy, &all, None),
        reach(&["git"], ToolView::Discovery(servers(&["git", "mail"])), &all, None),
    ];
    for outer in &outers {
        for view in [ToolView::Callable, ToolView::WholePolicy, ToolView::Discovery(servers(&all))]
        {
            let inner = reach(&all, view.clone(), &all, Some(outer));
            assert_eq!(allowed(inner.callable()), allowed(outer.callable()), "{view:?}");
            let hidden = |name: &&str| !outer.visible().allows_server(name);
            assert!(!allowed(inner.visible()).iter().any(hidden), "{view:?} in {outer:?}");
        }
    }
}

#[test]
fn inner_code_of_a_whole_view_sees_what_outer_code_may_call() {
    let all = ["git", "mail", "time"];
    let outer = reach(&["time"], ToolView::WholePolicy, &all, None);
    let inner = reach(&all, ToolView::WholePolicy, &all, Some(&outer));
    assert_eq!(parts(&inner), [["time"], ["time"], ["time"]]);
}

#[test]
fn inner_code_keeps_the_discovery_rules_of_outer_code() {
    let all = ["git", "mail", "time"];
    let outer = reach(&["git"], ToolView::Discovery(servers(&["git", "mail"])), &all, None);
    let inner = reach(&["mail"], ToolView::Callable, &all, Some(&outer));
    assert_eq!(parts(&inner), [vec![], vec!["git", "mail"], vec!["git", "mail"]]);
}
