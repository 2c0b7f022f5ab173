//! Parses a query: finds the index terms that match each of its words.

use super::ToolIndex;
use crate::{
    bilingual::{RunPart, split_run},
    loan_words::loan_words,
    stem::stem,
    thesaurus::{SynonymKind, synonyms},
    typos::typo_similarity,
    words::{TextPart, each_bigram, each_part, is_stop_word, is_weak_word},
};

/// One word or phrase of a query, with the index terms that match it.
#[derive(Default)]
pub(super) struct QueryTerm {
    pub(super) weight: f32,
    /// Matching terms of the index, each with a share from 0 to 1; the word itself comes first, if
    /// the index has it.
    pub(super) forms: Vec<(u32, f32)>,
    /// The forms that are the word itself, possibly spelled differently.
    pub(super) spellings: Vec<(u32, f32)>,
    /// The inverse document frequency, which limits the score.
    pub(super) rarity: f32,
}

struct QueryWord {
    stem: String,
    text: String,
    /// The English meanings of a Chinese, Japanese or Korean word.
    meanings: &'static [&'static str],
    /// The index terms that an unknown loan word sounds like.
    sounds_like: Vec<u32>,
}

/// Maximum number of words of a query that are not stop words; the rest are ignored.
const QUERY_WORDS: usize = 40;
/// The share of an English word for its translation.
const TRANSLATION: f32 = 0.95;
/// The share of a term that a loan word sounds like.
const SOUND: f32 = 0.7;
/// Maximum number of words of a phrase in the thesaurus.
const PHRASE_WORDS: usize = 4;
const WEAK_WEIGHT: f32 = 0.5;
/// The share of a term that has a common prefix with the word.
const PREFIX: f32 = 0.55;
/// The share of a compound, such as `pullrequest`, for its parts, and of the parts for it.
const COMPOUND: f32 = 0.8;
/// The weight of a word that no tool has: a weak sign that no tool matches well.
const UNKNOWN: f32 = 0.5;

impl ToolIndex {
    pub(super) fn query_terms(&self, text: &str) -> Vec<QueryTerm> {
        let words = self.query_words(text);
        // A query of stop words only searches for them.
        let has_only_stop_words = words.iter().all(|word| is_stop_word(&word.text));
        let mut terms = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        let mut rest = words.as_slice();
        let mut before: Option<&QueryWord> = None;
        while let [word, after @ ..] = rest {
            rest = after;
            if let Some((length, term)) = self.phrase_term(word, after) {
                terms.push(term);
                rest = after.get(length..).unwrap_or_default();
                before = None;
                continue;
            }
            if (is_stop_word(&word.text) && !has_only_stop_words)
                || seen.contains(&word.stem.as_str())
            {
                continue;
            }
            let mut term = match (word.meanings, word.sounds_like.as_slice()) {
                ([], []) => self.word_term(&word.stem, is_weak_word(&word.text)),
                ([], terms) => self.loan_term(terms),
                (meanings, _) => self.translated_term(&word.text, meanings),
            };
            let joined = [before.zip(Some(word)), Some(word).zip(after.first())];
            for (first, second) in joined.into_iter().flatten() {
                let compound = stem(&format!("{}{}", first.text, second.text));
                term.add_forms(self.id(&compound).map(|id| (id, COMPOUND)));
            }
            seen.push(&word.stem);
            before = Some(word);
            terms.push(term);
        }
        terms
    }

    /// Returns the words of a query, up to the last one that counts.
    fn query_words(&self, text: &str) -> Vec<QueryWord> {
        let mut words: Vec<QueryWord> = Vec::new();
        let mut left = QUERY_WORDS;
        let mut push = |text: &str, meanings: &'static [&'static str], sounds_like: &[u32]| {
            let is_content = !is_stop_word(text);
            if left == 0 && is_content {
                return;
            }
            left -= usize::from(is_content);
            let sounds_like = sounds_like.to_vec();
            words.push(QueryWord {
                stem: stem(text),
                text: text.to_owned(),
                meanings,
                sounds_like,
            });
        };
        each_part(text, |part| match part {
            TextPart::Word(word) => push(word, &[], &[]),
            TextPart::Cjk(run) => {
                for part in split_run(run) {
                    match part {
                        RunPart::Known(word, meanings) => push(word, meanings, &[]),
                        // Loan words; particles and endings only if a tool is described with them.
                        RunPart::Unknown(rest) => {
                            let heard = loan_words(rest);
                            let known = heard.iter().find_map(|sounds| self.sounds.get(sounds));
                            if let Some(terms) = known {
                                push(rest, &[], terms);
                            }
                            each_bigram(rest, |pair| {
                                if self.id(pair).is_some() {
                                    push(pair, &[], &[]);
                                }
                            });
                        }
                    }
                }
            }
        });
        words
    }

    /// Returns the term for a loan word, which matches what it sounds like.
    fn loan_term(&self, terms: &[u32]) -> QueryTerm {
        let forms: Vec<(u32, f32)> = terms.iter().map(|id| (*id, SOUND)).collect();
        let rarity = self.rarest(&forms);
        QueryTerm { weight: 1.0, spellings: forms.clone(), forms, rarity }
    }

    /// Returns the term for a Chinese, Japanese or Korean word, which matches itself and its
    /// meanings.
    fn translated_term(&self, text: &str, meanings: &[&str]) -> QueryTerm {
        let mut term = QueryTerm { weight: 1.0, ..QueryTerm::default() };
        each_bigram(text, |pair| term.add_forms(self.id(pair).map(|id| (id, 1.0))));
        for meaning in meanings {
            let mut english = QueryTerm::default();
            for word in meaning.split('_') {
                english = self.word_term(&stem(word), is_weak_word(word));
                let translated = |(id, share): &(u32, f32)| (*id, share * TRANSLATION);
                term.add_forms(english.forms.iter().map(translated));
                term.spellings.extend(english.spellings.iter().map(translated));
            }
            if term.rarity == 0.0 && !english.forms.is_empty() {
                (term.rarity, term.weight) = (english.rarity, english.weight);
            }
        }
        if term.forms.is_empty() {
            (term.rarity, term.weight) = (self.max_rarity(), UNKNOWN);
        } else if term.rarity == 0.0 {
            // Only tools that are described in the same language have it.
            term.rarity = self.rarest(&term.forms);
        }
        term
    }

    /// Returns the longest phrase that begins with this word, and how many more words it has.
    fn phrase_term(&self, word: &QueryWord, after: &[QueryWord]) -> Option<(usize, QueryTerm)> {
        (1..PHRASE_WORDS).rev().find_map(|length| {
            let mut phrase = word.stem.clone();
            for word in after.get(..length)? {
                phrase.push('_');
                phrase.push_str(&word.stem);
            }
            let mut term = QueryTerm { weight: 1.0, ..QueryTerm::default() };
            for meaning in synonyms(&phrase) {
                let share = meaning.kind.share();
                term.add_forms(self.id(&meaning.stem).map(|id| (id, share)));
                let same = synonyms(&meaning.stem).iter();
                let same = same.filter(|synonym| synonym.kind == SynonymKind::Same);
                let same = same.filter_map(|synonym| self.id(&synonym.stem));
                term.add_forms(same.map(|id| (id, share * SynonymKind::Same.share())));
            }
            term.rarity = self.rarest(&term.forms);
            (!term.forms.is_empty()).then_some((length, term))
        })
    }

    /// Returns the highest rarity of these terms.
    fn rarest(&self, forms: &[(u32, f32)]) -> f32 {
        forms.iter().map(|(id, _)| self.rarity(*id)).fold(0.0, f32::max)
    }

    fn word_term(&self, stem: &str, is_weak: bool) -> QueryTerm {
        let mut term = QueryTerm::default();
        let known = self.id(stem);
        term.add_forms(known.map(|id| (id, 1.0)));
        for synonym in synonyms(stem) {
            term.add_forms(self.id(&synonym.stem).map(|id| (id, synonym.kind.share())));
        }
        if known.is_none() {
            term.add_forms(self.parts(stem).into_iter().flatten().map(|id| (id, COMPOUND)));
        }
        let is_unknown = term.forms.is_empty();
        term.spellings = self.similar_terms(stem, is_unknown);
        term.spellings.extend(known.map(|id| (id, 1.0)));
        term.add_forms(term.spellings.clone());
        term.weight = 1.0;
        term.rarity = match known {
            Some(id) => self.rarity(id),
            // An unknown word is as rare as the rarest term that matches it.
            None => self.rarest(&term.forms),
        };
        if term.forms.is_empty() {
            term.rarity = self.max_rarity();
            term.weight = UNKNOWN;
        }
        if is_weak {
            term.weight *= WEAK_WEIGHT;
        }
        term
    }

    /// Splits `pullrequest` into `pull` and `request`, if the index has both.
    fn parts(&self, term: &str) -> Option<[u32; 2]> {
        (3..term.len().saturating_sub(2)).find_map(|at| {
            let (head, tail) = term.split_at_checked(at)?;
            Some([self.id(&stem(head))?, self.id(&stem(tail))?])
        })
    }

    /// Returns terms with a common prefix, and for an unknown word those that it may be a typo of.
    fn similar_terms(&self, term: &str, is_unknown: bool) -> Vec<(u32, f32)> {
        let mut similar = Vec::new();
        if term.len() < 4 {
            return similar;
        }
        for &id in &self.name_terms {
            let name = self.text(id);
            let has_prefix = name.starts_with(term)
                || (term.len() >= 5 && name.len() >= 4 && term.starts_with(name));
            if has_prefix && name != term {
                let rest = name.strip_prefix(term).and_then(|rest| self.id(rest));
                similar.push((id, if rest.is_some() { COMPOUND } else { PREFIX }));
            }
        }
        if is_unknown && similar.is_empty() {
            let all = (0..).zip(&self.terms);
            let typos = all.map(|(id, known)| (id, typo_similarity(term, &known.text)));
            similar.extend(typos.filter(|(_, similarity)| *similarity > 0.0));
        }
        similar
    }
}

impl QueryTerm {
    /// Adds forms. If a form is already there, the higher share counts.
    fn add_forms(&mut self, forms: impl IntoIterator<Item = (u32, f32)>) {
        for (id, share) in forms {
            match self.forms.iter_mut().find(|(known, _)| *known == id) {
                Some((_, known)) => *known = known.max(share),
                None => self.forms.push((id, share)),
            }
        }
    }

    /// Returns how well an index term matches.
    pub(super) fn share(&self, id: u32) -> f32 {
        self.forms.iter().find(|(form, _)| *form == id).map_or(0.0, |(_, share)| *share)
    }
}
