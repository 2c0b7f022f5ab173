use std::sync::LazyLock;

use regex::Regex;

use super::SecretRange;

#[expect(clippy::unwrap_used, reason = "a constant; the tests run it")]
static LINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----").unwrap()
});

/// How much is masked of a key whose END line is missing.
const UNTERMINATED_BYTES: usize = 8 << 10;

/// Finds private keys in PEM, from the BEGIN line to the END line. Not one regular expression,
/// because searching for missing END lines would take quadratic time.
pub(super) fn find(text: &str, found: &mut Vec<SecretRange>) {
    let mut begun: Option<usize> = None;
    let mut push = |start: usize, end: usize| {
        found.push(SecretRange { start, end, kind: "private-key" });
    };
    for line in LINE.captures_iter(text) {
        let (Some(whole), Some(word)) = (line.get(0), line.get(1)) else { continue };
        match (begun, word.as_str()) {
            (Some(start), "END") => {
                push(start, whole.end());
                begun = None;
            }
            (Some(start), _) => {
                push(start, find_unterminated_end(text, start, whole.start()));
                begun = Some(whole.start());
            }
            (None, "BEGIN") => begun = Some(whole.start()),
            (None, _) => {}
        }
    }
    if let Some(start) = begun {
        push(start, find_unterminated_end(text, start, text.len()));
    }
}

fn find_unterminated_end(text: &str, start: usize, next: usize) -> usize {
    text.floor_char_boundary(next.min(start.saturating_add(UNTERMINATED_BYTES)))
}
