/// Takes out what people write into JSON and JSON does not have: a byte order mark, `//` and
/// `/* */` comments, and commas before a closing bracket. Strings stay untouched; comments
/// become blanks, so that line numbers in errors stay right.
pub(super) fn to_json(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    // Where a comma stands in `out` that nothing but blanks has followed yet.
    let mut comma: Option<usize> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => c.len_utf8(),
        };
        let (token, behind) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        rest = behind;
        if c == '/' && taken > 1 {
            out.extend(token.chars().filter(|&c| c == '\n'));
            out.push(' ');
            continue;
        }
        match c {
            ',' => comma = Some(out.len()),
            '}' | ']' => {
                if let Some(at) = comma.take() {
                    out.replace_range(at..=at, " ");
                }
            }
            c if c.is_whitespace() => {}
            _ => comma = None,
        }
        out.push_str(token);
    }
    out
}

/// How long the string is that starts here, quotes included.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
