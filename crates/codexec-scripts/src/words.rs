//! Splits texts into words for the search.

/// The rest of a script's code is not searched.
const CODE_BYTES: usize = 64 << 10;
const CODE_WORDS: usize = 500;
const WORD_CHARS: usize = 40;

pub(crate) fn unique_words(text: &str) -> Vec<Box<str>> {
    dedup(split(text))
}

/// Returns the unique words of the searched part of the code.
pub(crate) fn code_words(code: &str) -> Vec<Box<str>> {
    let end = code.floor_char_boundary(CODE_BYTES);
    let mut words = dedup(split(code.get(..end).unwrap_or_default()));
    words.truncate(CODE_WORDS);
    words
}

/// Splits a text into lower-case words of letters and digits. `GitHub` gives `git`, `hub` and
/// `github`.
pub(crate) fn split(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .flat_map(split_camel_case)
        .map(|word| word.chars().take(WORD_CHARS).flat_map(char::to_lowercase).collect())
}

/// Splits `parseHTMLReport` into `parse`, `HTML` and `Report`, and adds the word itself.
fn split_camel_case(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut chars = word.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, c)) = chars.next() {
        let begins = before.is_some_and(|before| {
            let next_is_lower = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
            c.is_uppercase() && (!before.is_uppercase() || next_is_lower)
        });
        if begins {
            parts.extend(word.get(start..at));
            start = at;
        }
        before = Some(c);
    }
    parts.extend(word.get(start..).filter(|rest| !rest.is_empty()));
    if parts.len() > 1 {
        parts.push(word);
    }
    parts
}

/// Returns the stem of an English word: `pars` for `parsing`, `parses`, `parsed` and `parse`.
pub(crate) fn stem(word: &str) -> &str {
    const ENDINGS: [&str; 6] = ["ing", "ers", "er", "es", "ed", "s"];
    let long_enough = |stem: &&str| stem.chars().count() >= 3;
    let cut = |ending: &&str| word.strip_suffix(*ending).filter(long_enough);
    let stem = ENDINGS.iter().find_map(cut).unwrap_or(word);
    stem.strip_suffix('e').filter(long_enough).unwrap_or(stem)
}

fn dedup(words: impl Iterator<Item = String>) -> Vec<Box<str>> {
    let mut words: Vec<Box<str>> = words.map(String::into_boxed_str).collect();
    words.sort_unstable();
    words.dedup();
    words
}

#[cfg(test)]
mod tests;
