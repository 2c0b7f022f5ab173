use super::*;

fn parse(line: &str) -> Option<(u32, i32, String)> {
    Report::parse(line.as_bytes()).map(|report| (report.round, report.status, report.key))
}

#[test]
fn reports_have_the_round_the_status_and_the_key() {
    let report = |round, status| Some((round, status, "k".to_owned()));
    assert_eq!(parse("0 0 k \n"), report(0, 0));
    assert_eq!(parse("1 130 k \n"), report(1, 130));
    // The argument of `exit` counts, cut to one byte as the kernel does.
    assert_eq!(parse("0 130 k 7\n"), report(0, 7));
    assert_eq!(parse("0 130 k 256\n"), report(0, 0));
    assert_eq!(parse("0 130 k -1\n"), report(0, 255));
    assert_eq!(parse("0 130 k many\n"), report(0, 2));
}

#[test]
fn fil_13_a_report_names_the_directory_that_is_gone() {
    let gone = |line: &str| Report::parse(line.as_bytes()).and_then(|report| report.gone);
    assert_eq!(gone("0 1 k gone /box/work/a\\ b\n").as_deref(), Some("/box/work/a\\ b"));
    assert_eq!(gone("0 1 k gone\n"), None);
    assert_eq!(gone("0 0 k \n"), None);
}

#[test]
fn invalid_reports_are_ignored() {
    for line in ["", "\n", "3\n", "3 0\n", "0 0 k\n", "x 0 k \n", "-3 0 k \n", "99999999999 0 k \n"]
    {
        assert_eq!(parse(line), None, "{line:?}");
    }
    assert!(Report::parse(b"0 0 \xff \n").is_none());
}
