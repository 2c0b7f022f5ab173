use std::fmt::Write as _;

/// Maximum length of a name, and how much of that is its end.
const MAX_NAME_CHARS: usize = 120;
const TAIL_CHARS: usize = 40;

/// Formats an untrusted name on one line: invisible characters and those that reorder text are
/// escaped, and a long name loses its middle.
pub fn escape_name(name: &str) -> String {
    let (whole, is_complete) = escape_up_to(name.chars(), MAX_NAME_CHARS);
    if is_complete {
        return whole.concat();
    }
    let (head, _) = escape_up_to(name.chars(), MAX_NAME_CHARS - TAIL_CHARS);
    let (mut tail, _) = escape_up_to(name.chars().rev(), TAIL_CHARS);
    tail.reverse();
    format!("{}…{}", head.concat(), tail.concat())
}

/// Escapes invisible characters in a JSON text. They only occur inside strings.
pub(crate) fn escape_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() || is_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// Escapes as many characters as fit, and tells if that is all of them.
fn escape_up_to(chars: impl Iterator<Item = char>, max: usize) -> (Vec<String>, bool) {
    let mut parts = Vec::new();
    let mut left = max;
    for c in chars {
        let part = escape_char(c);
        match left.checked_sub(part.chars().count()) {
            Some(fewer) => left = fewer,
            None => return (parts, false),
        }
        parts.push(part);
    }
    (parts, true)
}

fn escape_char(c: char) -> String {
    match c {
        '\n' | '\r' | '\t' | '\\' => c.escape_default().to_string(),
        c if c.is_control() || is_invisible(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    }
}

/// True for zero-width characters, those that change the direction, and unusual spaces.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{a0}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{1680}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3000}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests;
