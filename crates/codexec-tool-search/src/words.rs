//! Splits text into words, and classifies words that carry little meaning.

use crate::kana::fold_spelling;

/// A part of a text: a word in lower case, or a run of Chinese, Japanese or Korean characters.
pub(super) enum TextPart<'a> {
    Word(&'a str),
    Cjk(&'a str),
}

/// Visits the words of a text in order, in lower case. Splits at everything that is not a letter
/// or digit, and inside `camelCase`. Chinese, Japanese and Korean have no words that could be told
/// apart without a dictionary, so every two adjacent characters count as a word.
pub(super) fn each_word(text: &str, mut visit: impl FnMut(&str)) {
    each_part(text, |part| match part {
        TextPart::Word(word) => visit(word),
        TextPart::Cjk(run) => each_bigram(run, &mut visit),
    });
}

/// Visits every two adjacent characters, or the only one.
pub(super) fn each_bigram(run: &str, mut visit: impl FnMut(&str)) {
    let mut ends = run.char_indices().map(|(at, c)| at + c.len_utf8()).skip(1).peekable();
    if ends.peek().is_none() && !run.is_empty() {
        return visit(run);
    }
    for ((begin, _), end) in run.char_indices().zip(ends) {
        visit(run.get(begin..end).unwrap_or_default());
    }
}

/// Visits the parts of a text in order, in their folded spelling.
pub(super) fn each_part(text: &str, mut visit: impl FnMut(TextPart<'_>)) {
    let text = fold_spelling(text);
    let mut lower = String::new();
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '\'') {
        // The part after the apostrophe in `server's` and `don't` has no meaning.
        let mut rest = word.split('\'').next().unwrap_or_default();
        while let Some((script, others)) = split_script(rest) {
            rest = others;
            if script.starts_with(is_cjk) {
                visit(TextPart::Cjk(script));
                continue;
            }
            let mut camel = script;
            while let Some((part, others)) = split_camel(camel) {
                camel = others;
                lower.clear();
                if part.is_ascii() {
                    lower.push_str(part);
                    lower.make_ascii_lowercase();
                } else {
                    lower.extend(part.chars().flat_map(char::to_lowercase));
                }
                visit(TextPart::Word(&lower));
            }
        }
    }
}

/// Splits off the characters before the first change between CJK and other scripts.
fn split_script(word: &str) -> Option<(&str, &str)> {
    if word.is_ascii() {
        return (!word.is_empty()).then_some((word, ""));
    }
    let is_first_cjk = word.starts_with(is_cjk);
    match word.find(|c| is_cjk(c) != is_first_cjk) {
        Some(at) => word.split_at_checked(at),
        None => (!word.is_empty()).then_some((word, "")),
    }
}

/// Returns true for Han characters, Hiragana, Katakana and Hangul.
fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3005}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9d}'
        | '\u{20000}'..='\u{2fa1f}')
}

/// Returns true for a syllable of Korean.
pub(super) fn is_hangul(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7af}')
}

/// Returns true for a word without meaning of its own.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Returns true for a word that is in many queries and hardly distinguishes them.
pub(super) fn is_weak_word(word: &str) -> bool {
    WEAK_WORDS.binary_search(&word).is_ok()
}

/// Splits off the first part: `getHTTPStatus` has the parts `get`, `HTTP` and `Status`.
fn split_camel(word: &str) -> Option<(&str, &str)> {
    // Most words need no split.
    if word.is_ascii() && !word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase()) {
        return (!word.is_empty()).then_some((word, ""));
    }
    let mut characters = word.char_indices().peekable();
    let (_, mut before) = characters.next()?;
    while let Some((at, c)) = characters.next() {
        let is_after_lower = before.is_lowercase() || before.is_numeric();
        let is_word_head =
            before.is_uppercase() && characters.peek().is_some_and(|(_, next)| next.is_lowercase());
        if c.is_uppercase() && (is_after_lower || is_word_head) {
            return word.split_at_checked(at);
        }
        before = c;
    }
    Some((word, ""))
}

/// Sorted, like `WEAK_WORDS`; a test checks it.
const STOP_WORDS: [&str; 120] = [
    "a", "about", "across", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "been", "before", "being", "but", "by", "can", "could", "d", "did", "do", "does", "doing",
    "each", "every", "for", "from", "given", "had", "has", "have", "he", "her", "here", "his",
    "how", "i", "if", "in", "inside", "into", "is", "it", "its", "just", "let", "like", "ll", "m",
    "may", "me", "might", "must", "my", "need", "no", "not", "of", "on", "only", "onto", "or",
    "our", "out", "over", "please", "re", "s", "shall", "she", "should", "so", "some", "such", "t",
    "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "to", "too", "tool", "tools", "up", "us", "use", "used", "uses", "using", "ve", "very", "via",
    "want", "was", "we", "were", "what", "when", "where", "whether", "which", "while", "who",
    "whose", "why", "will", "with", "would", "yet", "you", "your",
];

const WEAK_WORDS: [&str; 57] = [
    "able",
    "actual",
    "already",
    "anybody",
    "anything",
    "bit",
    "brand",
    "certain",
    "come",
    "couple",
    "currently",
    "everything",
    "exactly",
    "exist",
    "existing",
    "few",
    "full",
    "gave",
    "give",
    "go",
    "got",
    "handful",
    "help",
    "know",
    "little",
    "made",
    "make",
    "one",
    "ones",
    "own",
    "particular",
    "piece",
    "put",
    "quick",
    "quickly",
    "really",
    "say",
    "see",
    "several",
    "show",
    "single",
    "somebody",
    "someone",
    "something",
    "specific",
    "still",
    "take",
    "tell",
    "thing",
    "things",
    "through",
    "try",
    "two",
    "under",
    "way",
    "whatever",
    "whole",
];

#[cfg(test)]
mod tests;
