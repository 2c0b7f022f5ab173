use super::*;

#[test]
fn combined_filters_allow_what_both_allow() {
    let only = |text: &str| ToolFilter::only(vec![ToolPattern::parse(text, &[]).expect("one")]);
    let both = only("a.*").and(&only("*.x"));
    assert_eq!(both.check("a", "x"), Ok(()));
    assert_eq!(both.check("a", "y"), Err(ToolDenied::Tool));
    assert_eq!(both.check("b", "x"), Err(ToolDenied::Server));
    assert_eq!(
        ToolFilter::all().and(&ToolFilter::default()).check("a", "x"),
        Err(ToolDenied::Server)
    );
}

#[test]
fn globs_match() {
    for (pattern, text, expected) in [
        ("*", "", true),
        ("*", "anything", true),
        ("read_*", "read_file", true),
        ("read_*", "spread_file", false),
        ("*_file", "read_file", true),
        ("r*d_*e", "read_file", true),
        ("a*a", "a", false),
        ("a*b*c", "abbc", true),
        ("a*b*c", "acb", false),
        ("read", "read_file", false),
    ] {
        assert_eq!(matches_glob(pattern, text), expected, "{pattern} {text}");
    }
}

#[test]
fn patterns_are_parsed_in_every_spelling() {
    check("github.get_issue", "github | get_issue");
    check("github:*", "github | *");
    check("github/get_*", "github | get_*");
    check("mcp__github__*", "github | *");
    check("mcp__my__server__get__it", "my__server | get__it");
    check("mcp__other__get__it", "other | get__it");
    check("*", "* | *");
    for bad in ["github", "", ".", "github.", ":x", "mcp__github", "mcp____x"] {
        let error = ToolPattern::parse(bad, &[]).expect_err(bad);
        assert_eq!(error, InvalidPattern(bad.to_owned()));
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let servers = ["my", "my__server", "github"].map(|name| ServerName::new(name).expect(name));
    let pattern = ToolPattern::parse(text, &servers).expect(text);
    assert_eq!(format!("{} | {}", pattern.server, pattern.tool), expected);
}

#[test]
fn an_empty_list_denies_everything_and_lists_only_narrow() {
    let echo = || vec![ToolPattern::parse("fake.echo", &[]).expect("pattern")];
    assert_eq!(ToolFilter::all().check("fake", "echo"), Ok(()));
    assert_eq!(ToolFilter::only(vec![]).check("fake", "echo"), Err(ToolDenied::Server));
    assert_eq!(ToolFilter::default().check("fake", "echo"), Err(ToolDenied::Server));
    assert_eq!(
        ToolFilter::all().narrowed_by(vec![]).check("fake", "echo"),
        Err(ToolDenied::Server)
    );
    assert_eq!(ToolFilter::only(echo()).check("fake", "secret"), Err(ToolDenied::Tool));
    let widened = ToolFilter::only(echo()).narrowed_by(vec![ToolPattern::server("*")]);
    assert_eq!(widened.check("fake", "secret"), Err(ToolDenied::Tool));
    assert_eq!(widened.check("other", "echo"), Err(ToolDenied::Server));
    assert_eq!(widened.check("fake", "echo"), Ok(()));
}

#[test]
fn the_lists_of_a_filter_are_formatted_as_people_write_them() {
    let patterns = |list: &[&str]| -> Vec<ToolPattern> {
        list.iter().map(|text| ToolPattern::parse(text, &[]).expect("a pattern")).collect()
    };
    assert_eq!(ToolFilter::all().lists(), [["*"]]);
    assert_eq!(ToolFilter::default().lists(), [[""; 0]]);
    assert_eq!(ToolFilter::all().narrowed_by(Vec::new()).lists(), [[""; 0]]);
    let narrow = ToolFilter::all().narrowed_by(patterns(&["a:*", "mcp__b__x"]));
    assert_eq!(narrow.lists(), [["a.*", "b.x"]]);
    assert_eq!(narrow.clone().and(&narrow).lists(), [["a.*", "b.x"]]);
    let both = narrow.narrowed_by(patterns(&["a.y"]));
    assert_eq!(both.lists(), [vec!["a.*", "b.x"], vec!["a.y"]]);
}
