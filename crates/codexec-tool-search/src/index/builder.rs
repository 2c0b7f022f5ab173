//! Builds the search index.

use foldhash::HashMap;

use super::{TEXT_BYTES, Term, ToolDocument, ToolIndex};
use crate::{
    loan_words::{english_sounds, without_f},
    stem::stem,
    words::{each_word, is_stop_word},
};

const FIELD_COUNT: usize = 7;
/// The weight of each field, and how strongly its length reduces it: name, server, title, first
/// sentence of the description, rest of the description, parameter names, parameter texts.
const FIELDS: [(f32, f32); FIELD_COUNT] =
    [(2.0, 0.3), (4.0, 0.2), (1.5, 0.3), (2.0, 0.75), (0.7, 0.6), (0.3, 0.5), (0.3, 0.5)];

#[derive(Default)]
pub(super) struct IndexBuilder {
    index: ToolIndex,
    /// The term id of each word, to stem it only once; `None` for stop words.
    word_ids: HashMap<String, Option<u32>>,
}

impl IndexBuilder {
    pub(super) fn build(mut self, documents: &[ToolDocument<'_>]) -> ToolIndex {
        let fields: Vec<[Vec<u32>; FIELD_COUNT]> =
            documents.iter().map(|document| self.fields(document)).collect();
        let averages = average_lengths(&fields);
        let mut weights: Vec<f32> = vec![0.0; self.index.terms.len()];
        for (at, document) in (0..).zip(&fields) {
            for ((terms, (weight, length_share)), average) in
                document.iter().zip(FIELDS).zip(averages)
            {
                let length = terms.len() as f32 / average.max(1.0);
                let each = weight / (1.0 - length_share + length_share * length);
                for term in terms {
                    if let Some(sum) = weights.get_mut(*term as usize) {
                        *sum += each;
                    }
                }
            }
            for id in document.iter().flatten() {
                let weight = weights.get_mut(*id as usize).map_or(0.0, std::mem::take);
                if let Some(term) = self.index.terms.get_mut(*id as usize)
                    && weight > 0.0
                {
                    term.postings.push((at, weight));
                }
            }
        }
        let mut named: Vec<u32> = fields
            .iter()
            .flat_map(|[name, server, ..]| name.iter().chain(server))
            .copied()
            .collect();
        named.sort_unstable();
        named.dedup();
        self.add_sounds(&named);
        for [name, server, ..] in fields {
            self.index.name_terms.extend(&name);
            let specific: Vec<u32> =
                name.iter().copied().filter(|id| !server.contains(id)).collect();
            self.index.names.push(if specific.is_empty() { name } else { specific });
            self.index.servers.push(server);
        }
        self.index.name_terms.sort_unstable();
        self.index.name_terms.dedup();
        self.index
    }

    fn add_sounds(&mut self, terms: &[u32]) {
        for &id in terms {
            let Some(sounds) = english_sounds(self.index.text(id)) else { continue };
            if let Some(korean) = without_f(&sounds) {
                self.index.sounds.entry(korean).or_default().push(id);
            }
            self.index.sounds.entry(sounds).or_default().push(id);
        }
    }

    fn fields(&mut self, document: &ToolDocument<'_>) -> [Vec<u32>; FIELD_COUNT] {
        let (first, rest) = first_sentence(document.description);
        [
            self.name_terms(document.name),
            self.terms(document.server),
            self.terms(document.title),
            self.terms(first),
            self.terms(rest),
            self.terms(&document.parameters),
            self.terms(&document.parameter_texts),
        ]
    }

    /// Returns the terms of a name. A name of stop words only, such as `who`, keeps them.
    fn name_terms(&mut self, name: &str) -> Vec<u32> {
        let mut terms = self.terms(name);
        if terms.is_empty() {
            each_word(name, |word| terms.push(self.term_id(stem(word))));
        }
        terms
    }

    fn terms(&mut self, text: &str) -> Vec<u32> {
        let text = text.get(..text.floor_char_boundary(TEXT_BYTES)).unwrap_or(text);
        let mut terms = Vec::new();
        each_word(text, |word| terms.extend(self.word_id(word)));
        terms
    }

    fn word_id(&mut self, word: &str) -> Option<u32> {
        if let Some(id) = self.word_ids.get(word) {
            return *id;
        }
        let id = (!is_stop_word(word)).then(|| self.term_id(stem(word)));
        self.word_ids.insert(word.to_owned(), id);
        id
    }

    fn term_id(&mut self, text: String) -> u32 {
        let next = u32::try_from(self.index.terms.len()).unwrap_or(u32::MAX);
        let id = *self.index.ids.entry(text.clone()).or_insert(next);
        if id == next {
            self.index.terms.push(Term { text, postings: Vec::new() });
        }
        id
    }
}

fn first_sentence(description: &str) -> (&str, &str) {
    let description = description.trim();
    let ends = [". ", ".\n", "\n\n"].iter().filter_map(|end| description.find(end));
    let end = ends.min().map_or(description.len(), |end| end + 1);
    description.split_at_checked(end).unwrap_or((description, ""))
}

fn average_lengths(fields: &[[Vec<u32>; FIELD_COUNT]]) -> [f32; FIELD_COUNT] {
    let mut sums = [0.0; FIELD_COUNT];
    for document in fields {
        for (sum, terms) in sums.iter_mut().zip(document) {
            *sum += terms.len() as f32;
        }
    }
    sums.map(|sum| sum / fields.len().max(1) as f32)
}
