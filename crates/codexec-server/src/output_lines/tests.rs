use super::*;

#[test]
fn lines_are_told_once_and_only_complete() {
    let mut output = OutputLines::default();
    output.push("a");
    assert_eq!(output.after(0), (0, None));
    output.push("b\nc\nd");
    assert_eq!(output.after(0), (2, Some("ab\nc".to_owned())));
    assert_eq!(output.after(2), (2, None));
    output.push("\n");
    assert_eq!(output.after(2), (3, Some("d".to_owned())));
}

#[test]
fn a_flood_is_bounded() {
    let mut output = OutputLines::default();
    output.push(&"x".repeat(1 << 20));
    output.push(&"\ny".repeat(100_000));
    let (count, lines) = output.after(0);
    let lines = lines.expect("lines");
    assert_eq!((count, lines.lines().count()), (100_000, MAX_LINES));
    output.push(&"é".repeat(500));
    output.push("\n");
    let (_, last) = output.after(count);
    assert_eq!(last.map(|line| line.chars().count()), Some(MAX_LINE_CHARS));
}
