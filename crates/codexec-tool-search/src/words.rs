//! Splits text into words, and classifies words that carry little meaning.

/// Visits the words of a text in order, in lower case. Splits at everything that is not a letter
/// or digit, and inside `camelCase`.
pub(super) fn each_word(text: &str, mut visit: impl FnMut(&str)) {
    let mut lower = String::new();
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '\'') {
        // The part after the apostrophe in `server's` and `don't` has no meaning.
        let mut rest = word.split('\'').next().unwrap_or_default();
        while let Some((part, others)) = split_camel(rest) {
            rest = others;
            lower.clear();
            if part.is_ascii() {
                lower.push_str(part);
                lower.make_ascii_lowercase();
            } else {
                lower.extend(part.chars().flat_map(char::to_lowercase));
            }
            visit(&lower);
        }
    }
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
