//! Which scripts fit a request best.

use crate::{
    catalogue::Entry,
    meta::Meta,
    words::{Words, split, stem},
};

/// What comes after is not looked for.
const QUERY_WORDS: usize = 24;

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
    const ALL: [Relevance; 4] =
        [Relevance::Name, Relevance::Tag, Relevance::Description, Relevance::Code];

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

/// The words of one script, by where they stand.
#[derive(Debug)]
pub(crate) struct Places {
    name: Words,
    tags: Words,
    description: Words,
    code: Words,
}

impl Places {
    pub(crate) fn of(meta: &Meta, code: &str) -> Places {
        Places {
            name: Words::of(&meta.name),
            tags: Words::of(&meta.tags.join(" ")),
            description: Words::of(&meta.shown().description),
            code: Words::of_code(code),
        }
    }

    fn words(&self, place: Relevance) -> &Words {
        match place {
            Relevance::Name => &self.name,
            Relevance::Tag => &self.tags,
            Relevance::Description => &self.description,
            Relevance::Code => &self.code,
        }
    }

    /// The best place of a word, and what it counts there.
    fn best(&self, word: &str, stem: &str) -> Option<(Relevance, f64)> {
        Relevance::ALL
            .into_iter()
            .map(|place| (place, self.words(place).fit(word, stem) * place.weight()))
            .filter(|(_, value)| *value > 0.0)
            .reduce(|best, other| if other.1 > best.1 { other } else { best })
    }
}

/// Best first; those that fit alike stand in the order of their names. A request without a word
/// in it finds everything.
pub(crate) fn search<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    query: &str,
    limit: usize,
) -> Vec<Hit> {
    let mut words: Vec<String> = Vec::new();
    for word in split(query).take(QUERY_WORDS) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let entries: Vec<&Entry> = entries.collect();
    let mut found: Vec<Found<'_>> = entries.iter().map(|entry| Found::new(entry)).collect();
    for word in &words {
        let stem = stem(word);
        let bests: Vec<Option<(Relevance, f64)>> =
            entries.iter().map(|entry| entry.places.best(word, stem)).collect();
        let rarity = rarity(entries.len(), bests.iter().flatten().count());
        for (found, best) in found.iter_mut().zip(bests) {
            if let Some((place, value)) = best {
                found.count(place, value * rarity);
            }
        }
    }
    if !words.is_empty() {
        found.retain(|found| found.matched > 0);
    }
    for found in &mut found {
        found.score *= found.matched as f64 / words.len().max(1) as f64;
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found.into_iter().take(limit).map(Found::hit).collect()
}

/// A word that stands in few scripts tells more than one that stands in all of them.
fn rarity(all: usize, having: usize) -> f64 {
    (1.0 + all as f64 / having.max(1) as f64).ln()
}

struct Found<'a> {
    entry: &'a Entry,
    place: Relevance,
    score: f64,
    matched: usize,
}

impl<'a> Found<'a> {
    fn new(entry: &'a Entry) -> Found<'a> {
        Found { entry, place: Relevance::Code, score: 0.0, matched: 0 }
    }

    fn count(&mut self, place: Relevance, value: f64) {
        if place.weight() > self.place.weight() {
            self.place = place;
        }
        self.score += value;
        self.matched += 1;
    }

    fn hit(self) -> Hit {
        let relevance = if self.matched == 0 { Relevance::Name } else { self.place };
        Hit { meta: self.entry.meta.shown(), relevance, score: self.score }
    }
}

#[cfg(test)]
mod tests;
