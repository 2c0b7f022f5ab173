//! Ranked search for scripts.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
};

use crate::{
    meta::ScriptMeta,
    words::{code_words, split, stem, unique_words},
};

/// Further words of a query are ignored.
const QUERY_WORDS: usize = 24;

/// The weight of each kind of match, from 0 to 1.
const EXACT: f64 = 1.0;
const SAME_STEM: f64 = 0.8;
const PREFIX: f64 = 0.6;

/// A script that matches a query.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptMatch {
    pub meta: ScriptMeta,
    pub relevance: MatchedField,
    /// Larger is better. Comparable only within one search.
    pub score: f64,
}

/// The most important field of a script that contains a word of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedField {
    Name,
    Tag,
    Language,
    Description,
    Code,
}

impl MatchedField {
    pub fn as_str(self) -> &'static str {
        match self {
            MatchedField::Name => "name_match",
            MatchedField::Tag => "tag_match",
            MatchedField::Language => "language_match",
            MatchedField::Description => "description_match",
            MatchedField::Code => "code_match",
        }
    }

    fn weight(self) -> f64 {
        match self {
            MatchedField::Name => 8.0,
            MatchedField::Tag => 5.0,
            MatchedField::Language => 4.0,
            MatchedField::Description => 3.0,
            MatchedField::Code => 1.0,
        }
    }
}

/// The number of a script in a [`Lexicon`]; small, and reused after a script is removed.
pub(crate) type Number = usize;

/// The words of one script, each with its field.
#[derive(Debug)]
pub(crate) struct ScriptWords {
    words: Vec<(MatchedField, Box<str>)>,
}

impl ScriptWords {
    pub(crate) fn new(meta: &ScriptMeta, code: &str) -> ScriptWords {
        let language = format!("{} {}", meta.language.name(), meta.language.short());
        let fields = [
            (MatchedField::Name, unique_words(&meta.name)),
            (MatchedField::Tag, unique_words(&meta.tags.join(" "))),
            (MatchedField::Language, unique_words(&language)),
            (MatchedField::Description, unique_words(&meta.without_hidden().description)),
            (MatchedField::Code, code_words(code)),
        ];
        let each = fields
            .into_iter()
            .flat_map(|(field, words)| words.into_iter().map(move |word| (field, word)));
        ScriptWords { words: each.collect() }
    }
}

/// The inverted index: each word with the scripts and fields that contain it.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    words: BTreeMap<Box<str>, Vec<(Number, MatchedField)>>,
    /// The same by stem. Not for code, which contains names and no grammar.
    stems: HashMap<Box<str>, Vec<(Number, MatchedField)>>,
    /// How many numbers were ever used, and which of them are free.
    numbers: usize,
    free: Vec<Number>,
}

/// How well one script matches a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchScore {
    pub(crate) relevance: MatchedField,
    pub(crate) score: f64,
    matched_words: u32,
}

impl Lexicon {
    pub(crate) fn add(&mut self, script: &ScriptWords) -> Number {
        let number = self.free.pop().unwrap_or(self.numbers);
        self.numbers = self.numbers.max(number + 1);
        for (field, word) in &script.words {
            self.words.entry(word.clone()).or_default().push((number, *field));
            if *field != MatchedField::Code {
                self.stems.entry(stem(word).into()).or_default().push((number, *field));
            }
        }
        number
    }

    pub(crate) fn remove(&mut self, number: Number, script: &ScriptWords) {
        self.free.push(number);
        for (_, word) in &script.words {
            if let Some(occurrences) = self.words.get_mut(word) {
                occurrences.retain(|(other, _)| *other != number);
                if occurrences.is_empty() {
                    self.words.remove(word);
                }
            }
            if let Some(occurrences) = self.stems.get_mut(stem(word)) {
                occurrences.retain(|(other, _)| *other != number);
                if occurrences.is_empty() {
                    self.stems.remove(stem(word));
                }
            }
        }
    }

    /// Scores each script by its number. Returns `None` if the query has no words.
    pub(crate) fn score(&self, query: &str) -> Option<Vec<MatchScore>> {
        let mut query_words: Vec<String> = Vec::new();
        for word in split(query).take(QUERY_WORDS) {
            if !query_words.contains(&word) {
                query_words.push(word);
            }
        }
        let mut scores = vec![MatchScore::NONE; self.numbers];
        for word in &query_words {
            let matches = self.match_word(word);
            let matching = matches.iter().filter(|found| found.value > 0.0).count();
            let rarity = rarity(self.numbers, matching);
            for (score, found) in scores.iter_mut().zip(matches) {
                score.add(found, rarity);
            }
        }
        for score in &mut scores {
            score.score *= f64::from(score.matched_words) / query_words.len() as f64;
        }
        (!query_words.is_empty()).then_some(scores)
    }

    /// Returns the best match of one word in each script.
    fn match_word(&self, word: &str) -> Vec<WordMatch> {
        let mut matches = vec![WordMatch { field: MatchedField::Code, value: 0.0 }; self.numbers];
        let mut add = |occurrences: &[(Number, MatchedField)], weight: f64| {
            for (number, field) in occurrences {
                let value = field.weight() * weight;
                if let Some(best) = matches.get_mut(*number).filter(|best| value > best.value) {
                    *best = WordMatch { field: *field, value };
                }
            }
        };
        // A single letter is a prefix of too many words.
        let is_prefix = word.chars().nth(1).is_some();
        let onwards = (Bound::Included(word), Bound::Unbounded);
        for (known, occurrences) in self.words.range::<str, _>(onwards) {
            if **known == *word {
                add(occurrences, EXACT);
            } else if is_prefix && known.starts_with(word) {
                add(occurrences, PREFIX);
            } else {
                break;
            }
        }
        if let Some(occurrences) = self.stems.get(stem(word)) {
            add(occurrences, SAME_STEM);
        }
        matches
    }
}

/// The best match of one word in a script; its value is 0 if the script lacks the word.
#[derive(Clone, Copy)]
struct WordMatch {
    field: MatchedField,
    value: f64,
}

impl MatchScore {
    const NONE: MatchScore =
        MatchScore { relevance: MatchedField::Code, score: 0.0, matched_words: 0 };
    /// Without a query, every script counts as found by its name.
    pub(crate) const NO_QUERY: MatchScore =
        MatchScore { relevance: MatchedField::Name, ..MatchScore::NONE };

    pub(crate) fn is_match(&self) -> bool {
        self.matched_words > 0
    }

    fn add(&mut self, word: WordMatch, rarity: f64) {
        if word.value <= 0.0 {
            return;
        }
        if word.field.weight() > self.relevance.weight() {
            self.relevance = word.field;
        }
        self.score += word.value * rarity;
        self.matched_words += 1;
    }
}

/// Returns the weight of a word: the fewer scripts contain it, the larger.
fn rarity(scripts: usize, matching: usize) -> f64 {
    (1.0 + scripts as f64 / matching.max(1) as f64).ln()
}

#[cfg(test)]
mod tests;
