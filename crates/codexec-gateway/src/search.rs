//! Finding tools by what they are for: BM25 over weighted fields, with stems, a thesaurus, and
//! forgiveness for typing errors; then what the name alone says.

mod build;
mod near;
mod query;
mod stem;
mod thesaurus;
mod words;

use foldhash::HashMap;

use build::Builder;
use query::Concept;

/// What is known of one tool.
#[derive(Debug, Default)]
pub(crate) struct Document<'a> {
    pub(crate) server: &'a str,
    pub(crate) name: &'a str,
    pub(crate) title: &'a str,
    pub(crate) description: &'a str,
    pub(crate) parameters: String,
    pub(crate) parameter_texts: String,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    ids: HashMap<String, u32>,
    /// By id.
    terms: Vec<Term>,
    /// The terms of names; sorted, so that the order never changes.
    name_terms: Vec<u32>,
    /// Each document's name, as terms in their order, without those of its server.
    names: Vec<Vec<u32>>,
    /// Each document's server's name.
    servers: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct Term {
    text: String,
    /// The documents it occurs in, with how much it weighs there.
    postings: Vec<(u32, f32)>,
}

const SATURATION: f32 = 2.0;
/// What a document gains by meeting all of a request rather than a little of it well.
const COVERAGE: f32 = 2.0;
/// What it gains when its whole name is asked for, and nothing else is in the name.
const NAME: f32 = 0.5;
/// What it gains by having two words side by side in its name as they are in the request.
const PAIR: f32 = 0.5;
/// What it gains when its server is named.
const SERVER: f32 = 0.4;
const TEXT_BYTES: usize = 2 << 10;

/// Reads what every search needs, so that the first one does not have to.
pub(crate) fn prepare() {
    thesaurus::kin("");
}

impl Index {
    pub(crate) fn new(documents: &[Document<'_>]) -> Index {
        Builder::default().build(documents)
    }

    /// The documents that match, best first; equal ones in their own order.
    pub(crate) fn rank(&self, query: &str) -> Vec<usize> {
        let query = query.get(..query.floor_char_boundary(TEXT_BYTES)).unwrap_or(query);
        let concepts = self.concepts(query);
        let mut ranked: Vec<(usize, f32)> = self
            .word_scores(&concepts)
            .into_iter()
            .enumerate()
            .filter(|(_, score)| *score > 0.0)
            .collect();
        for (document, score) in &mut ranked {
            *score *= 1.0 + self.name_score(*document, &concepts);
            *score *= 1.0 + SERVER * self.server_score(*document, &concepts);
        }
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.into_iter().map(|(document, _)| document).collect()
    }

    /// Per document, how much of the request its words answer, from 0 to 1 and a little more.
    fn word_scores(&self, concepts: &[Concept]) -> Vec<f32> {
        let whole: f32 = concepts.iter().map(|concept| concept.weight * concept.rarity).sum();
        let mut scores = vec![(0.0, 0.0); self.names.len()];
        let mut best: Vec<f32> = Vec::new();
        for concept in concepts {
            best.clear();
            best.resize(self.names.len(), 0.0);
            for &(id, share) in &concept.forms {
                // A word that stands for another one is not worth more than that one.
                let worth = share * self.rarity(id).min(concept.rarity);
                for &(document, weight) in self.postings(id) {
                    let score = worth * weight * (SATURATION + 1.0) / (weight + SATURATION);
                    if let Some(best) = best.get_mut(document as usize) {
                        *best = best.max(score);
                    }
                }
            }
            for ((sum, met), best) in scores.iter_mut().zip(&best) {
                *sum += concept.weight * best;
                *met += concept.weight * best.min(concept.rarity);
            }
        }
        let whole = whole.max(f32::MIN_POSITIVE);
        scores.iter().map(|(sum, met)| sum / whole * (1.0 + COVERAGE * met / whole)).collect()
    }

    fn name_score(&self, document: usize, concepts: &[Concept]) -> f32 {
        let name = self.names.get(document).map_or(&[][..], Vec::as_slice);
        let share =
            |id: &u32| concepts.iter().map(|concept| concept.share(*id)).fold(0.0, f32::max);
        let met: f32 = name.iter().map(share).sum();
        let pairs = name.windows(2).map(|pair| match pair {
            [a, b] => concepts
                .windows(2)
                .map(|two| match two {
                    [x, y] => (x.share(*a) * y.share(*b)).max(x.share(*b) * y.share(*a)),
                    _ => 0.0,
                })
                .fold(0.0, f32::max),
            _ => 0.0,
        });
        NAME * met / name.len().max(1) as f32 + PAIR * pairs.sum::<f32>().min(1.0)
    }

    /// How surely the request names the server, by its name or the beginning of it.
    fn server_score(&self, document: usize, concepts: &[Concept]) -> f32 {
        let server = self.servers.get(document).map_or(&[][..], Vec::as_slice);
        let named = |concept: &Concept| {
            concept
                .spelled
                .iter()
                .filter(|(id, _)| server.contains(id))
                .map(|(_, share)| *share)
                .fold(0.0, f32::max)
        };
        concepts.iter().map(named).fold(0.0, f32::max)
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

    fn rarity(&self, id: u32) -> f32 {
        self.rarity_of(self.postings(id).len())
    }

    fn most_rarity(&self) -> f32 {
        self.rarity_of(0)
    }

    fn rarity_of(&self, having: usize) -> f32 {
        let (all, having) = (self.names.len() as f32, having as f32);
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }
}

#[cfg(test)]
mod tests;
