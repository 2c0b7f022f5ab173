//! Finding tools by what they are for: BM25 over weighted fields, with stems, near words, and
//! forgiveness for typing errors in names.

mod words;

use std::collections::{BTreeMap, HashMap};

use words::{kin, terms};

/// How much of each tool an answer shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    Names,
    #[default]
    Summary,
    Full,
}

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
    /// Per term, the documents it occurs in, with how much it weighs there.
    postings: HashMap<String, Vec<(u32, f32)>>,
    /// The terms of names, for typing errors; sorted, so that the order never changes.
    name_terms: Vec<String>,
    documents: u32,
}

/// Weight of each field, and how strongly its length counts against it.
const FIELDS: [(f32, f32); 6] =
    [(4.0, 0.3), (2.0, 0.2), (2.5, 0.3), (1.0, 0.6), (0.8, 0.5), (0.4, 0.7)];
const SATURATION: f32 = 1.4;
const KIN_WEIGHT: f32 = 0.45;
const NEAR_WEIGHT: f32 = 0.6;
/// A query is a sentence, not a book.
const QUERY_TERMS: usize = 32;
const TEXT_BYTES: usize = 2 << 10;

impl Index {
    pub(crate) fn new(documents: &[Document<'_>]) -> Index {
        let fields: Vec<[Vec<String>; 6]> = documents.iter().map(field_terms).collect();
        let averages = average_lengths(&fields);
        let mut index = Index { documents: to_u32(documents.len()), ..Index::default() };
        for (at, document) in fields.iter().enumerate() {
            let mut weights: BTreeMap<&str, f32> = BTreeMap::new();
            for ((terms, (weight, length_share)), average) in
                document.iter().zip(FIELDS).zip(averages)
            {
                let length = terms.len() as f32 / average.max(1.0);
                let each = weight / (1.0 - length_share + length_share * length);
                for term in terms {
                    *weights.entry(term).or_default() += each;
                }
            }
            for (term, weight) in weights {
                index.postings.entry(term.to_owned()).or_default().push((to_u32(at), weight));
            }
            index.name_terms.extend(document.iter().take(1).flatten().cloned());
        }
        index.name_terms.sort();
        index.name_terms.dedup();
        index
    }

    /// The documents that match, best first; equal ones in their own order.
    pub(crate) fn rank(&self, query: &str) -> Vec<usize> {
        let query = query.get(..query.floor_char_boundary(TEXT_BYTES)).unwrap_or(query);
        let mut asked = terms(query);
        asked.truncate(QUERY_TERMS);
        asked.sort();
        asked.dedup();
        let mut scores: HashMap<u32, (f32, u32)> = HashMap::new();
        for term in &asked {
            for (document, score) in self.score_term(term) {
                let (sum, hits) = scores.entry(document).or_default();
                *sum += score;
                *hits += 1;
            }
        }
        // A tool that meets more of what was asked beats one that meets a rare word well.
        let share = |hits: u32| 1.0 + hits as f32 / asked.len().max(1) as f32;
        let mut ranked: Vec<(u32, f32)> = scores
            .into_iter()
            .map(|(document, (sum, hits))| (document, sum * share(hits)))
            .collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.into_iter().map(|(document, _)| document as usize).collect()
    }

    /// What one asked term adds to each document: its best form counts, not their sum.
    fn score_term(&self, term: &str) -> HashMap<u32, f32> {
        let mut best: HashMap<u32, f32> = HashMap::new();
        let mut add = |form: &str, share: f32| {
            for (document, score) in self.score_form(form, share) {
                let entry = best.entry(document).or_default();
                *entry = entry.max(score);
            }
        };
        add(term, 1.0);
        for word in kin(term) {
            add(word, KIN_WEIGHT);
        }
        if term.len() >= 3 {
            for near in self.name_terms.iter().filter(|name| is_near(term, name)) {
                add(near, NEAR_WEIGHT);
            }
        }
        best
    }

    fn score_form(&self, form: &str, share: f32) -> impl Iterator<Item = (u32, f32)> {
        let postings = self.postings.get(form).map_or(&[][..], Vec::as_slice);
        let (all, having) = (self.documents as f32, postings.len() as f32);
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        postings.iter().map(move |&(document, weight)| {
            (document, share * rarity * weight * (SATURATION + 1.0) / (weight + SATURATION))
        })
    }
}

fn field_terms(document: &Document<'_>) -> [Vec<String>; 6] {
    let text = |text: &str| terms(text.get(..text.floor_char_boundary(TEXT_BYTES)).unwrap_or(text));
    [
        text(document.name),
        text(document.server),
        text(document.title),
        text(document.description),
        text(&document.parameters),
        text(&document.parameter_texts),
    ]
}

fn average_lengths(fields: &[[Vec<String>; 6]]) -> [f32; 6] {
    let mut sums = [0.0; 6];
    for document in fields {
        for (sum, terms) in sums.iter_mut().zip(document) {
            *sum += terms.len() as f32;
        }
    }
    sums.map(|sum| sum / fields.len().max(1) as f32)
}

/// One begins with the other, or they differ by one typing error.
fn is_near(asked: &str, name: &str) -> bool {
    if asked == name {
        return false;
    }
    let (short, long) = if asked.len() < name.len() { (asked, name) } else { (name, asked) };
    if short.len() >= 3 && long.starts_with(short) {
        return true;
    }
    short.len() >= 4 && long.len() - short.len() <= 1 && is_one_edit(short, long)
}

/// A letter more, another letter, or two letters swapped.
fn is_one_edit(short: &str, long: &str) -> bool {
    let same = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b).count();
    let rest = |text: &str, skip: usize| text.as_bytes().get(same + skip..).map(<[u8]>::to_vec);
    if short.len() < long.len() {
        return rest(short, 0) == rest(long, 1);
    }
    let swapped = rest(short, 0).zip(rest(long, 0)).is_some_and(|(mut a, b)| {
        if a.len() > 1 {
            a.swap(0, 1);
        }
        a == b
    });
    rest(short, 1) == rest(long, 1) || swapped
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
