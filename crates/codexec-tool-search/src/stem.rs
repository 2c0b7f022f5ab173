//! An English stemmer after Porter's second algorithm ("Porter2"), without its lists of
//! exceptions: the forms of a word must have the same stem, but the stem need not be a word.

/// Returns the stem of a lower-case word. A short or non-ASCII word is unchanged.
pub(super) fn stem(word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut stem = Stem::new(word);
    stem.strip_plural();
    stem.strip_verb_ending();
    stem.replace_last_y();
    stem.replace_first(&DOUBLE_SUFFIXES, stem.first_region);
    stem.replace_first(&SUFFIXES, stem.first_region);
    stem.drop_suffix();
    stem.tidy_end();
    stem.word
}

/// Compound suffixes, and the simpler suffix that replaces each.
const DOUBLE_SUFFIXES: [(&str, &str); 22] = [
    ("ization", "ize"),
    ("ational", "ate"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("lessli", "less"),
    ("entli", "ent"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("ousli", "ous"),
    ("iviti", "ive"),
    ("fulli", "ful"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("abli", "able"),
    ("izer", "ize"),
    ("ator", "ate"),
    ("alli", "al"),
    ("bli", "ble"),
];

const SUFFIXES: [(&str, &str); 8] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("alize", "al"),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
];

/// Longest first.
const LAST_SUFFIXES: [&str; 17] = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "al", "er", "ic",
];

struct Stem {
    word: String,
    /// The start of Porter's region R1, which must contain a suffix: after the first consonant
    /// that follows a vowel.
    first_region: usize,
    /// The start of region R2, defined in the same way within R1.
    second_region: usize,
}

impl Stem {
    fn new(word: &str) -> Stem {
        let first_region = region_after(word, 0);
        let second_region = region_after(word, first_region);
        Stem { word: word.to_owned(), first_region, second_region }
    }

    fn strip_plural(&mut self) {
        if self.word.ends_with("sses") {
            self.cut(2);
        } else if self.word.ends_with("ies") || self.word.ends_with("ied") {
            self.cut(if self.word.len() > 4 { 2 } else { 1 });
        } else if self.word.ends_with('s')
            && !self.word.ends_with("ss")
            && !self.word.ends_with("us")
            && has_vowel(self.before(2))
        {
            self.cut(1);
        }
    }

    fn strip_verb_ending(&mut self) {
        let endings = ["ingly", "edly", "ing", "ed"];
        let Some(ending) = endings.into_iter().find(|ending| self.word.ends_with(ending)) else {
            return;
        };
        if !has_vowel(self.before(ending.len())) {
            return;
        }
        self.cut(ending.len());
        let is_doubled = ["bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"]
            .iter()
            .any(|double| self.word.ends_with(double));
        if ["at", "bl", "iz"].iter().any(|end| self.word.ends_with(end)) {
            self.word.push('e');
        } else if is_doubled {
            self.cut(1);
        } else if self.first_region >= self.word.len() && is_short_end(&self.word) {
            self.word.push('e');
        }
    }

    fn replace_last_y(&mut self) {
        let before = self.before(1).bytes().last();
        if self.word.len() > 2
            && self.word.ends_with('y')
            && before.is_some_and(|byte| !is_vowel(byte))
        {
            self.cut(1);
            self.word.push('i');
        }
    }

    fn replace_first(&mut self, table: &[(&str, &str)], region: usize) {
        let found = table.iter().find(|(suffix, _)| self.word.ends_with(suffix));
        if let Some((suffix, instead)) = found
            && self.word.len() - suffix.len() >= region
        {
            self.cut(suffix.len());
            self.word.push_str(instead);
        }
    }

    fn drop_suffix(&mut self) {
        // In R1 rather than R2 as in Porter2, so that `creation` has the stem of `create`.
        if self.word.ends_with("sion") || self.word.ends_with("tion") {
            if self.word.len() - 3 >= self.first_region {
                self.cut(3);
            }
            return;
        }
        let found = LAST_SUFFIXES.iter().find(|suffix| self.word.ends_with(**suffix));
        if let Some(suffix) = found
            && self.word.len() - suffix.len() >= self.second_region
        {
            self.cut(suffix.len());
        }
    }

    fn tidy_end(&mut self) {
        let before = self.before(1);
        let is_e = self.word.ends_with('e')
            && (before.len() >= self.second_region
                || (before.len() >= self.first_region && !is_short_end(before)));
        let is_double_l = self.word.ends_with("ll") && before.len() >= self.second_region;
        if is_e || is_double_l {
            self.cut(1);
        }
    }

    fn before(&self, count: usize) -> &str {
        self.word.get(..self.word.len().saturating_sub(count)).unwrap_or_default()
    }

    fn cut(&mut self, count: usize) {
        self.word.truncate(self.word.len().saturating_sub(count));
    }
}

fn region_after(word: &str, start: usize) -> usize {
    let bytes = word.as_bytes().get(start..).unwrap_or_default();
    let pair =
        bytes.windows(2).position(|pair| matches!(pair, [a, b] if is_vowel(*a) && !is_vowel(*b)));
    pair.map_or(word.len(), |at| start + at + 2)
}

fn has_vowel(text: &str) -> bool {
    text.bytes().any(is_vowel)
}

fn is_vowel(byte: u8) -> bool {
    b"aeiouy".contains(&byte)
}

/// Returns true if the text ends in a short syllable, as `hop` and `us` do.
fn is_short_end(text: &str) -> bool {
    match text.as_bytes() {
        [.., a, b, c] => !is_vowel(*a) && is_vowel(*b) && !is_vowel(*c) && !b"wxy".contains(c),
        [a, b] => is_vowel(*a) && !is_vowel(*b),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
