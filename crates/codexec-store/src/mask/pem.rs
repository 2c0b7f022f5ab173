use std::sync::LazyLock;

use regex::Regex;

use super::Secret;

#[expect(clippy::unwrap_used, reason = "a constant; the tests run it")]
static LINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----").unwrap()
});

/// How much is taken for a key whose end is missing.
const UNENDED_BYTES: usize = 8 << 10;

/// Private keys in PEM: from the first line to the last. By hand, because an expression that looks
/// for the last line would look again and again where there is none.
pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let mut begun: Option<usize> = None;
    let mut push = |start: usize, end: usize| {
        found.push(Secret { start, end, kind: "private-key" });
    };
    for line in LINE.captures_iter(text) {
        let (Some(whole), Some(word)) = (line.get(0), line.get(1)) else { continue };
        match (begun, word.as_str()) {
            (Some(start), "END") => {
                push(start, whole.end());
                begun = None;
            }
            (Some(start), _) => {
                push(start, unended(text, start, whole.start()));
                begun = Some(whole.start());
            }
            (None, "BEGIN") => begun = Some(whole.start()),
            (None, _) => {}
        }
    }
    if let Some(start) = begun {
        push(start, unended(text, start, text.len()));
    }
}

fn unended(text: &str, start: usize, next: usize) -> usize {
    text.floor_char_boundary(next.min(start.saturating_add(UNENDED_BYTES)))
}
