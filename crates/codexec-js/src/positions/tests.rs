use super::*;

#[test]
fn frames_are_mapped_and_others_left_out() {
    let position = |line, column| Position { line, column };
    let tokens = [((0, 0), position(5, 1)), ((0, 6), position(5, 9)), ((1, 2), position(8, 3))];
    let positions = Positions::new("const é = f();\n\tg();\n".to_owned(), tokens.into_iter());
    let mut texts = GuestTexts::default();
    assert_eq!(texts.add(0, Default::default(), positions), "<code>");
    let check = |engine: &str, expected: Option<(u32, u32)>| {
        let at = texts.parse_stack(engine, "Odd").at.map(|at| (at.line, at.column));
        assert_eq!(at, expected, "{engine}");
    };
    check("    at f (<code>:2:1)", Some((5, 1)));
    check("    at f (<code>:2:12)", Some((5, 9)));
    check("    at f (<code>:3:1)", Some((8, 3)));
    check(
        "    at native (native)\n    at g (codexec:tools:3:1)\n    at f (<code>:3:4)",
        Some((8, 3)),
    );
    check("    at f (<code>:1:1)", None);
    check("    at f (<code>:99:1)", None);
    check("    at f (<code>:2:99999999999)", None);
    check("    at Odd (<code>:2:1)\n    at f (<code>:3:3)", Some((8, 3)));
    check("nonsense (<code>:2:1)", None);
    let stack = texts.parse_stack("    at f (x) (<code>:2:1)\n    at <main> (<code>:3:3)", "");
    assert_eq!(stack.text.as_deref(), Some("at f (x) (5:1)\nat <main> (8:3)"));
}

#[test]
fn frames_of_older_cells_name_their_cell() {
    let position = |line, column| Position { line, column };
    let one = |at| Positions::new("f();\n".to_owned(), [((0, 0), at)].into_iter());
    let mut texts = GuestTexts::default();
    assert_eq!(texts.add(1, Default::default(), one(position(7, 1))), "<cell 1>");
    assert_eq!(texts.add(2, Default::default(), one(position(3, 4))), "<cell 2>");
    let engine = "    at f (<cell 1>:2:1)\n    at g (<cell 9>:2:1)\n    at <main> (<cell 2>:2:1)";
    let stack = texts.parse_stack(engine, "");
    assert_eq!(stack.at, Some(position(3, 4)));
    assert_eq!(stack.text.as_deref(), Some("at f (cell 1, 7:1)\nat <main> (3:4)"));
}

#[test]
fn remembered_texts_are_limited() {
    let mut texts = GuestTexts::default();
    let long = || Positions::new("x".repeat(MAX_PRINTED_BYTES / 2), std::iter::empty());
    for number in 1..=4 {
        texts.add(number, Default::default(), long());
    }
    assert_eq!(texts.positions.keys().copied().collect::<Vec<_>>(), [3, 4]);
    texts.add(
        5,
        Default::default(),
        Positions::new("x".repeat(MAX_PRINTED_BYTES + 1), std::iter::empty()),
    );
    assert_eq!(texts.positions.keys().copied().collect::<Vec<_>>(), [5]);
}

#[test]
fn offsets_become_lines_and_utf16_columns() {
    let check = |code: &str, offset, expected| {
        let at = position_of(code, offset);
        assert_eq!((at.line, at.column), expected, "{code:?} {offset}");
    };
    check("abc", 0, (1, 1));
    check("a\nbc", 3, (2, 2));
    check("a\r\nbc", 3, (2, 1));
    check("'😀'x", 6, (1, 5));
    check("", 9, (1, 1));
}
