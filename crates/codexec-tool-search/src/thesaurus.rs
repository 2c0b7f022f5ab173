//! The thesaurus of search words, read from `thesaurus.txt`.

use std::{collections::HashMap, sync::LazyLock};

use crate::stem::stem;

/// A stem that matches in place of another one.
pub(super) struct Synonym {
    pub(super) stem: String,
    pub(super) kind: SynonymKind,
}

/// How two words are related, the closest relation first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SynonymKind {
    Same,
    /// People say one, interfaces use the other.
    Colloquial,
    Related,
}

const TEXT: &str = include_str!("thesaurus.txt");
const SAME: f32 = 0.75;
const COLLOQUIAL: f32 = 0.9;
const RELATED: f32 = 0.45;

impl SynonymKind {
    /// Returns the share of a match; the word itself has 1.
    pub(super) fn share(self) -> f32 {
        match self {
            SynonymKind::Same => SAME,
            SynonymKind::Colloquial => COLLOQUIAL,
            SynonymKind::Related => RELATED,
        }
    }
}

/// Loads the thesaurus, so that the first search is not slower.
pub fn load_thesaurus() {
    synonyms("");
}

/// Returns the synonyms of a stem, without itself. The stems of a phrase are joined by `_`.
pub(super) fn synonyms(of: &str) -> &'static [Synonym] {
    static TABLE: LazyLock<HashMap<String, Vec<Synonym>>> = LazyLock::new(read_table);
    TABLE.get(of).map_or(&[], Vec::as_slice)
}

fn read_table() -> HashMap<String, Vec<Synonym>> {
    let mut table: HashMap<String, Vec<Synonym>> = HashMap::new();
    for group in TEXT.lines().filter_map(SynonymGroup::parse) {
        for query in &group.query {
            for indexed in group.indexed.iter().filter(|indexed| *indexed != query) {
                let synonyms = table.entry(query.clone()).or_default();
                match synonyms.iter_mut().find(|synonym| synonym.stem == *indexed) {
                    Some(known) => known.kind = known.kind.min(group.kind),
                    None => synonyms.push(Synonym { stem: indexed.clone(), kind: group.kind }),
                }
            }
        }
    }
    table
}

/// Returns the stems of a phrase's words, joined by `_`.
fn phrase_stem(words: &str) -> String {
    words.split('_').map(stem).collect::<Vec<String>>().join("_")
}

/// One line of the thesaurus.
struct SynonymGroup {
    /// Stems that a query may have.
    query: Vec<String>,
    /// Stems in the index that match them.
    indexed: Vec<String>,
    kind: SynonymKind,
}

impl SynonymGroup {
    /// Returns `None` for comments, empty lines and invalid lines.
    fn parse(line: &str) -> Option<SynonymGroup> {
        let stems =
            |words: &str| words.split_whitespace().map(phrase_stem).collect::<Vec<String>>();
        let (mark, words) = line.split_once(' ')?;
        let (query, indexed, kind) = match mark {
            "=" => (stems(words), stems(words), SynonymKind::Same),
            "~" => (stems(words), stems(words), SynonymKind::Related),
            ">" => {
                let (query, indexed) = words.split_once(" : ")?;
                (stems(query), stems(indexed), SynonymKind::Colloquial)
            }
            _ => return None,
        };
        Some(SynonymGroup { query, indexed, kind })
    }
}

#[cfg(test)]
mod tests;
