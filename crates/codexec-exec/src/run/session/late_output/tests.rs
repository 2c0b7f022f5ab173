use super::*;

fn texts(late: &mut LateOutput) -> Vec<(OutputStream, String)> {
    let text = |event| match event {
        RunEvent::Output { stream, text } => (stream, text),
        other => panic!("{other:?}"),
    };
    late.take_since_last_reply().into_iter().map(text).collect()
}

#[test]
fn ses_2_late_output_is_marked_by_stream_and_given_once() {
    let mut late = LateOutput::default();
    late.push(OutputStream::Err, "e");
    late.push(OutputStream::Out, "a\n");
    late.push(OutputStream::Out, "b\n");
    let marked = |text: &str| {
        format!("[codexec] written after the last reply:\n{text}[codexec] this reply:\n")
    };
    let expected = [(OutputStream::Out, marked("a\nb\n")), (OutputStream::Err, marked("e\n"))];
    assert_eq!(texts(&mut late), expected);
    assert_eq!(texts(&mut late), []);
}

#[test]
fn ses_2_late_output_is_bounded() {
    let mut late = LateOutput::default();
    late.push(OutputStream::Out, &"x".repeat(LATE_BYTES - 1));
    // No character is cut in two.
    late.push(OutputStream::Out, "é");
    for _ in 0..1_000 {
        late.push(OutputStream::Out, &"y".repeat(LATE_BYTES));
    }
    let texts = texts(&mut late);
    let text = &texts[0].1;
    assert!(text.len() < LATE_BYTES + 200, "{}", text.len());
    let left_out = 2 + 1_000 * LATE_BYTES - 1;
    assert!(
        text.contains(&format!("[codexec] and {left_out} bytes more\n")),
        "{}",
        &text[LATE_BYTES..]
    );
}
