use super::*;

fn parsed(line: &str) -> Option<(u32, u32, i32)> {
    Report::parse(line.as_bytes()).map(|report| (report.number, report.round, report.status))
}

#[test]
fn reports_say_the_cell_the_round_and_the_status() {
    assert_eq!(parsed("3 0 0 \n"), Some((3, 0, 0)));
    assert_eq!(parsed("3 1 130 \n"), Some((3, 1, 130)));
    // What `exit` was given counts, as a process would keep it.
    assert_eq!(parsed("3 0 130 7\n"), Some((3, 0, 7)));
    assert_eq!(parsed("3 0 130 256\n"), Some((3, 0, 0)));
    assert_eq!(parsed("3 0 130 -1\n"), Some((3, 0, 255)));
    assert_eq!(parsed("3 0 130 many\n"), Some((3, 0, 2)));
}

#[test]
fn what_is_no_report_says_nothing() {
    for line in ["", "\n", "3\n", "3 0\n", "3 0 0\n", "x 0 0 \n", "-3 0 0 \n", "3 99999999999 0 \n"]
    {
        assert_eq!(parsed(line), None, "{line:?}");
    }
    assert!(Report::parse(b"3 0 \xff \n").is_none());
}
