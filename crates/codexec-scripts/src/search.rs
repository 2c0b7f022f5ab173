//! Which scripts fit a request best.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
};

use crate::{
    meta::Meta,
    words::{code_words, split, stem, words},
};

/// What comes after is not looked for.
const QUERY_WORDS: usize = 24;

/// How well a place has a word, from 0 to 1.
const WHOLE: f64 = 1.0;
const OTHER_FORM: f64 = 0.8;
const BEGINNING: f64 = 0.6;

/// What was found, and how well it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub meta: Meta,
    pub relevance: Relevance,
    /// Larger is better; it says nothing beyond one search.
    pub score: f64,
}

/// The weightiest place where a word of the request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relevance {
    Name,
    Tag,
    Description,
    Code,
}

impl Relevance {
    pub fn as_str(self) -> &'static str {
        match self {
            Relevance::Name => "name_match",
            Relevance::Tag => "tag_match",
            Relevance::Description => "description_match",
            Relevance::Code => "code_match",
        }
    }

    fn weight(self) -> f64 {
        match self {
            Relevance::Name => 8.0,
            Relevance::Tag => 5.0,
            Relevance::Description => 3.0,
            Relevance::Code => 1.0,
        }
    }
}

/// Stands for one script in a [`Lexicon`]; small, and used again when a script is gone.
pub(crate) type Number = usize;

/// The words of one script, by where they stand.
#[derive(Debug)]
pub(crate) struct Places {
    words: Vec<(Relevance, Box<str>)>,
}

impl Places {
    pub(crate) fn of(meta: &Meta, code: &str) -> Places {
        let places = [
            (Relevance::Name, words(&meta.name)),
            (Relevance::Tag, words(&meta.tags.join(" "))),
            (Relevance::Description, words(&meta.shown().description)),
            (Relevance::Code, code_words(code)),
        ];
        let each = places
            .into_iter()
            .flat_map(|(place, words)| words.into_iter().map(move |word| (place, word)));
        Places { words: each.collect() }
    }
}

/// All words of all scripts, and where they stand.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    words: BTreeMap<Box<str>, Vec<(Number, Relevance)>>,
    /// Code has names and no grammar, so it has no other forms of a word.
    stems: HashMap<Box<str>, Vec<(Number, Relevance)>>,
    /// How many were ever given out, and which of them are free.
    numbers: usize,
    free: Vec<Number>,
}

/// How well one script fits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    pub(crate) relevance: Relevance,
    pub(crate) score: f64,
    matched: u32,
}

impl Lexicon {
    pub(crate) fn add(&mut self, places: &Places) -> Number {
        let number = self.free.pop().unwrap_or(self.numbers);
        self.numbers = self.numbers.max(number + 1);
        for (place, word) in &places.words {
            self.words.entry(word.clone()).or_default().push((number, *place));
            if *place != Relevance::Code {
                self.stems.entry(stem(word).into()).or_default().push((number, *place));
            }
        }
        number
    }

    pub(crate) fn remove(&mut self, number: Number, places: &Places) {
        self.free.push(number);
        for (_, word) in &places.words {
            if let Some(where_it_stands) = self.words.get_mut(word) {
                where_it_stands.retain(|(other, _)| *other != number);
                if where_it_stands.is_empty() {
                    self.words.remove(word);
                }
            }
            if let Some(where_it_stands) = self.stems.get_mut(stem(word)) {
                where_it_stands.retain(|(other, _)| *other != number);
                if where_it_stands.is_empty() {
                    self.stems.remove(stem(word));
                }
            }
        }
    }

    /// How well each script fits, by its number; `None` if the request has no word in it.
    pub(crate) fn fits(&self, query: &str) -> Option<Vec<Fit>> {
        let mut wanted: Vec<String> = Vec::new();
        for word in split(query).take(QUERY_WORDS) {
            if !wanted.contains(&word) {
                wanted.push(word);
            }
        }
        let mut fits = vec![Fit::NONE; self.numbers];
        for word in &wanted {
            let bests = self.bests(word);
            let having = bests.iter().filter(|best| best.value > 0.0).count();
            let rarity = rarity(self.numbers, having);
            for (fit, best) in fits.iter_mut().zip(bests) {
                fit.count(best, rarity);
            }
        }
        for fit in &mut fits {
            fit.score *= f64::from(fit.matched) / wanted.len() as f64;
        }
        (!wanted.is_empty()).then_some(fits)
    }

    /// For each script its best place of the word, and what it counts there.
    fn bests(&self, word: &str) -> Vec<Best> {
        let mut bests = vec![Best { place: Relevance::Code, value: 0.0 }; self.numbers];
        let mut take = |standing: &[(Number, Relevance)], how_well: f64| {
            for (number, place) in standing {
                let value = place.weight() * how_well;
                if let Some(best) = bests.get_mut(*number).filter(|best| value > best.value) {
                    *best = Best { place: *place, value };
                }
            }
        };
        // One letter begins everything.
        let is_beginning = word.chars().nth(1).is_some();
        let onwards = (Bound::Included(word), Bound::Unbounded);
        for (known, standing) in self.words.range::<str, _>(onwards) {
            if **known == *word {
                take(standing, WHOLE);
            } else if is_beginning && known.starts_with(word) {
                take(standing, BEGINNING);
            } else {
                break;
            }
        }
        if let Some(standing) = self.stems.get(stem(word)) {
            take(standing, OTHER_FORM);
        }
        bests
    }
}

/// Where a script has one word, and what that counts; nothing if it has not.
#[derive(Clone, Copy)]
struct Best {
    place: Relevance,
    value: f64,
}

impl Fit {
    const NONE: Fit = Fit { relevance: Relevance::Code, score: 0.0, matched: 0 };
    /// Where nothing is asked for, the name is what a script is found by.
    pub(crate) const UNASKED: Fit = Fit { relevance: Relevance::Name, ..Fit::NONE };

    pub(crate) fn is_any(&self) -> bool {
        self.matched > 0
    }

    fn count(&mut self, best: Best, rarity: f64) {
        if best.value <= 0.0 {
            return;
        }
        if best.place.weight() > self.relevance.weight() {
            self.relevance = best.place;
        }
        self.score += best.value * rarity;
        self.matched += 1;
    }
}

/// A word that stands in few scripts tells more than one that stands in all of them.
fn rarity(all: usize, having: usize) -> f64 {
    (1.0 + all as f64 / having.max(1) as f64).ln()
}

#[cfg(test)]
mod tests;
