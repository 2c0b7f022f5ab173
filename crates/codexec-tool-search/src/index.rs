//! The search index, and how tools are ranked for a query.

mod builder;
mod query;

use foldhash::HashMap;

use builder::IndexBuilder;
use query::QueryTerm;

/// The searchable texts of one tool.
#[derive(Debug, Default)]
pub struct ToolDocument<'a> {
    pub server: &'a str,
    pub name: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub parameters: String,
    pub parameter_texts: String,
}

/// The search index over all tools.
#[derive(Debug, Default)]
pub struct ToolIndex {
    ids: HashMap<String, u32>,
    /// Indexed by term id.
    terms: Vec<Term>,
    /// The terms of tool names; sorted, so that results are deterministic.
    name_terms: Vec<u32>,
    /// The terms of the names of tools and servers by their sound, which loan words share.
    sounds: HashMap<String, Vec<u32>>,
    /// The terms of each tool's name in order, without those of its server's name.
    names: Vec<Vec<u32>>,
    /// The terms of each tool's server's name.
    servers: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct Term {
    text: String,
    /// The documents that contain the term, with its weight in each.
    postings: Vec<(u32, f32)>,
}

/// BM25's k1: how fast repeated occurrences stop counting.
const SATURATION: f32 = 2.0;
/// The bonus for matching all of a query rather than a part of it well.
const COVERAGE: f32 = 2.0;
/// The bonus if every word of the tool's name is in the query.
const NAME: f32 = 0.5;
/// The bonus if two adjacent words of the name are adjacent in the query.
const PAIR: f32 = 0.5;
/// The bonus if the query names the server.
const SERVER: f32 = 0.4;
/// The share of a clause of the query that matches by itself.
const CLAUSE: f32 = 0.4;
/// Shorter clauses, in words that count, are only parts of a sentence.
const CLAUSE_TERMS: usize = 3;
/// The limit on clauses that are tried.
const CLAUSES: usize = 8;
/// The score of a document that matches at least half of the query.
pub const GOOD_MATCH: f32 = 1.0;
/// Longer texts are cut.
const TEXT_BYTES: usize = 2 << 10;

impl ToolIndex {
    pub fn new(documents: &[ToolDocument<'_>]) -> ToolIndex {
        IndexBuilder::default().build(documents)
    }

    /// Returns the matching documents, best first; ties in their original order.
    pub fn rank(&self, query: &str) -> Vec<usize> {
        self.rank_scored(query).into_iter().map(|(document, _)| document).collect()
    }

    /// Returns the matching documents with their scores, best first; ties in their original order.
    pub fn rank_scored(&self, query: &str) -> Vec<(usize, f32)> {
        let query = query.get(..query.floor_char_boundary(TEXT_BYTES)).unwrap_or(query);
        let mut scores = self.scores(&self.query_terms(query));
        let clauses = split_clauses(query).map(|clause| self.query_terms(clause));
        let clauses: Vec<Vec<QueryTerm>> =
            clauses.filter(|terms| terms.len() >= CLAUSE_TERMS).take(CLAUSES).collect();
        if clauses.len() > 1 {
            for terms in &clauses {
                for (score, clause_score) in scores.iter_mut().zip(self.scores(terms)) {
                    *score = score.max(clause_score * CLAUSE);
                }
            }
        }
        let mut ranked: Vec<(usize, f32)> =
            scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked
    }

    /// Returns the score of each document.
    fn scores(&self, terms: &[QueryTerm]) -> Vec<f32> {
        let mut scores = self.word_scores(terms);
        for (document, score) in scores.iter_mut().enumerate().filter(|(_, score)| **score > 0.0) {
            *score *= 1.0 + self.name_score(document, terms);
            *score *= 1.0 + SERVER * self.server_score(document, terms);
        }
        scores
    }

    /// Returns for each document how much of the query its words match, from 0 to a little over 1.
    fn word_scores(&self, terms: &[QueryTerm]) -> Vec<f32> {
        let whole: f32 = terms.iter().map(|term| term.weight * term.rarity).sum();
        let mut scores = vec![(0.0, 0.0); self.names.len()];
        let mut best: Vec<f32> = Vec::new();
        for term in terms {
            best.clear();
            best.resize(self.names.len(), 0.0);
            for &(id, share) in &term.forms {
                // A synonym does not score higher than the word itself.
                let worth = share * self.rarity(id).min(term.rarity);
                for &(document, weight) in self.postings(id) {
                    let score = worth * weight * (SATURATION + 1.0) / (weight + SATURATION);
                    if let Some(best) = best.get_mut(document as usize) {
                        *best = best.max(score);
                    }
                }
            }
            for ((sum, matched), best) in scores.iter_mut().zip(&best) {
                *sum += term.weight * best;
                *matched += term.weight * best.min(term.rarity);
            }
        }
        let whole = whole.max(f32::MIN_POSITIVE);
        let total = |(sum, matched): &(f32, f32)| sum / whole * (1.0 + COVERAGE * matched / whole);
        scores.iter().map(total).collect()
    }

    /// Returns the bonus for matches in the tool's name.
    fn name_score(&self, document: usize, terms: &[QueryTerm]) -> f32 {
        let name = self.names.get(document).map_or(&[][..], Vec::as_slice);
        let share = |id: &u32| terms.iter().map(|term| term.share(*id)).fold(0.0, f32::max);
        let matched: f32 = name.iter().map(share).sum();
        let pairs = name.windows(2).map(|pair| match pair {
            [a, b] => terms
                .windows(2)
                .map(|two| match two {
                    [x, y] => (x.share(*a) * y.share(*b)).max(x.share(*b) * y.share(*a)),
                    _ => 0.0,
                })
                .fold(0.0, f32::max),
            _ => 0.0,
        });
        NAME * matched / name.len().max(1) as f32 + PAIR * pairs.sum::<f32>().min(1.0)
    }

    /// Returns how certainly the query names the server, by its name or a prefix of it.
    fn server_score(&self, document: usize, terms: &[QueryTerm]) -> f32 {
        let server = self.servers.get(document).map_or(&[][..], Vec::as_slice);
        let named = |term: &QueryTerm| {
            term.spellings
                .iter()
                .filter(|(id, _)| server.contains(id))
                .map(|(_, share)| *share)
                .fold(0.0, f32::max)
        };
        terms.iter().map(named).fold(0.0, f32::max)
    }

    fn id(&self, term: &str) -> Option<u32> {
        self.ids.get(term).copied()
    }

    fn text(&self, id: u32) -> &str {
        self.terms.get(id as usize).map_or("", |term| &term.text)
    }

    fn postings(&self, id: u32) -> &[(u32, f32)] {
        self.terms.get(id as usize).map_or(&[], |term| &term.postings)
    }

    /// Returns the term's inverse document frequency.
    fn rarity(&self, id: u32) -> f32 {
        self.rarity_of(self.postings(id).len())
    }

    fn max_rarity(&self) -> f32 {
        self.rarity_of(0)
    }

    fn rarity_of(&self, documents: usize) -> f32 {
        let (all, documents) = (self.names.len() as f32, documents as f32);
        (1.0 + (all - documents + 0.5) / (documents + 0.5)).ln()
    }
}

/// Splits a query where a sentence or a clause ends.
fn split_clauses(query: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| ",;:!?\n，、；：。！？".contains(c);
    let parts = query.split(is_end).flat_map(|part| part.split(". "));
    parts.flat_map(|part| part.split(" then "))
}

#[cfg(test)]
mod tests;
