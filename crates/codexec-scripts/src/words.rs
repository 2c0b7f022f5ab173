//! Texts as the words that a search looks for.

/// More of a script's code is not searched.
const CODE_BYTES: usize = 64 << 10;
const CODE_WORDS: usize = 500;
const WORD_CHARS: usize = 40;

/// The words of one text, sorted and each once.
#[derive(Debug, Default)]
pub(crate) struct Words {
    words: Box<[Box<str>]>,
    stems: Box<[Box<str>]>,
}

/// How well a text has a word, from 0 to 1.
const WHOLE: f64 = 1.0;
const OTHER_FORM: f64 = 0.8;
const BEGINNING: f64 = 0.6;

impl Words {
    pub(crate) fn of(text: &str) -> Words {
        let words = sorted(split(text));
        let stems = sorted(words.iter().map(|word| stem(word).to_owned()));
        Words { words, stems }
    }

    /// Code has names and no grammar, so it has no other forms of a word.
    pub(crate) fn of_code(code: &str) -> Words {
        let end = code.floor_char_boundary(CODE_BYTES);
        let mut words = Vec::from(sorted(split(code.get(..end).unwrap_or_default())));
        words.truncate(CODE_WORDS);
        Words { words: words.into(), stems: Box::default() }
    }

    pub(crate) fn fit(&self, word: &str, stem: &str) -> f64 {
        let at = self.words.partition_point(|known| **known < *word);
        let found = self.words.get(at);
        if found.is_some_and(|found| **found == *word) {
            return WHOLE;
        }
        if self.stems.binary_search_by(|known| (**known).cmp(stem)).is_ok() {
            return OTHER_FORM;
        }
        // One letter begins everything.
        let is_beginning =
            word.chars().nth(1).is_some() && found.is_some_and(|found| found.starts_with(word));
        if is_beginning { BEGINNING } else { 0.0 }
    }
}

/// In lower case, split where letters and digits end and where `camelCase` has its humps.
pub(crate) fn split(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .flat_map(humps)
        .map(|word| word.chars().take(WORD_CHARS).flat_map(char::to_lowercase).collect::<String>())
}

/// `parseHTMLReport` as `parse`, `HTML`, `Report`.
fn humps(word: &str) -> Vec<&str> {
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
    parts
}

/// `parsing`, `parses`, `parsed` and `parse` have one: `pars`.
pub(crate) fn stem(word: &str) -> &str {
    const ENDINGS: [&str; 6] = ["ing", "ers", "er", "es", "ed", "s"];
    let long_enough = |stem: &&str| stem.chars().count() >= 3;
    let cut = |ending: &&str| word.strip_suffix(*ending).filter(long_enough);
    let stem = ENDINGS.iter().find_map(cut).unwrap_or(word);
    stem.strip_suffix('e').filter(long_enough).unwrap_or(stem)
}

fn sorted(words: impl Iterator<Item = String>) -> Box<[Box<str>]> {
    let mut words: Vec<Box<str>> = words.map(String::into_boxed_str).collect();
    words.sort_unstable();
    words.dedup();
    words.into()
}

#[cfg(test)]
mod tests;
