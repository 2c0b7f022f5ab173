//! From a request to what is looked up: for each word of it, the terms that would answer it.

use super::{
    Index,
    near::likeness,
    stem::stem,
    thesaurus::{Kind, kin},
    words::{each_word, is_faint, is_stop},
};

/// One word of a request.
#[derive(Default)]
pub(super) struct Concept {
    pub(super) weight: f32,
    /// Terms of the index that answer it, and how well; the word itself comes first, if known.
    pub(super) forms: Vec<(u32, f32)>,
    /// Those of them that are the word itself, however it is spelled.
    pub(super) spelled: Vec<(u32, f32)>,
    /// How rare it is, and so how much it can be worth.
    pub(super) rarity: f32,
}

struct Word {
    stem: String,
    text: String,
}

/// A query is a sentence, not a book.
const QUERY_WORDS: usize = 40;
const PHRASE_WORDS: usize = 4;
const FAINT_WEIGHT: f32 = 0.5;
const BEGINS_ALIKE: f32 = 0.55;
const COMPOUND: f32 = 0.8;
/// A word that no tool has is still a sign that none of them is quite right, but a weak one.
const UNKNOWN: f32 = 0.5;

impl Index {
    pub(super) fn concepts(&self, text: &str) -> Vec<Concept> {
        let mut words: Vec<Word> = Vec::new();
        each_word(text, |word| words.push(Word { stem: stem(word), text: word.to_owned() }));
        words.truncate(QUERY_WORDS);
        // Where nothing else is asked, they are.
        let is_empty = words.iter().all(|word| is_stop(&word.text));
        let mut concepts = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        let mut rest = words.as_slice();
        let mut before: Option<&Word> = None;
        while let [word, after @ ..] = rest {
            rest = after;
            if let Some((length, concept)) = self.phrase(word, after) {
                concepts.push(concept);
                rest = after.get(length..).unwrap_or_default();
                before = None;
                continue;
            }
            if (is_stop(&word.text) && !is_empty) || seen.contains(&word.stem.as_str()) {
                continue;
            }
            let mut concept = self.concept(&word.stem, is_faint(&word.text));
            let joined = [before.zip(Some(word)), Some(word).zip(after.first())];
            for (first, second) in joined.into_iter().flatten() {
                let compound = stem(&format!("{}{}", first.text, second.text));
                concept.extend(self.id(&compound).map(|id| (id, COMPOUND)));
            }
            seen.push(&word.stem);
            before = Some(word);
            concepts.push(concept);
        }
        concepts
    }

    /// The longest phrase that begins with this word, and how many of those after it belong to it.
    fn phrase(&self, word: &Word, after: &[Word]) -> Option<(usize, Concept)> {
        (1..PHRASE_WORDS).rev().find_map(|length| {
            let mut phrase = word.stem.clone();
            for word in after.get(..length)? {
                phrase.push('_');
                phrase.push_str(&word.stem);
            }
            let mut concept = Concept { weight: 1.0, ..Concept::default() };
            for said in kin(&phrase) {
                let share = said.kind.share();
                concept.extend(self.id(&said.stem).map(|id| (id, share)));
                let same = kin(&said.stem).iter().filter(|kin| kin.kind == Kind::Same);
                let same = same.filter_map(|kin| self.id(&kin.stem));
                concept.extend(same.map(|id| (id, share * Kind::Same.share())));
            }
            concept.rarity = self.rarest(&concept.forms);
            (!concept.forms.is_empty()).then_some((length, concept))
        })
    }

    fn rarest(&self, forms: &[(u32, f32)]) -> f32 {
        forms.iter().map(|(id, _)| self.rarity(*id)).fold(0.0, f32::max)
    }

    fn concept(&self, term: &str, is_faint: bool) -> Concept {
        let mut concept = Concept::default();
        let known = self.id(term);
        concept.extend(known.map(|id| (id, 1.0)));
        for kin in kin(term) {
            concept.extend(self.id(&kin.stem).map(|id| (id, kin.kind.share())));
        }
        if known.is_none() {
            concept.extend(self.parts(term).into_iter().flatten().map(|id| (id, COMPOUND)));
        }
        let is_strange = concept.forms.is_empty();
        concept.spelled = self.alike(term, is_strange);
        concept.spelled.extend(known.map(|id| (id, 1.0)));
        concept.extend(concept.spelled.clone());
        concept.weight = 1.0;
        concept.rarity = match known {
            Some(id) => self.rarity(id),
            // As rare as the best that stands for it.
            None => self.rarest(&concept.forms),
        };
        if concept.forms.is_empty() {
            concept.rarity = self.most_rarity();
            concept.weight = UNKNOWN;
        }
        if is_faint {
            concept.weight *= FAINT_WEIGHT;
        }
        concept
    }

    /// `pullrequest` as `pull` and `request`, if both are known.
    fn parts(&self, term: &str) -> Option<[u32; 2]> {
        (3..term.len().saturating_sub(2)).find_map(|at| {
            let (head, tail) = term.split_at_checked(at)?;
            Some([self.id(&stem(head))?, self.id(&stem(tail))?])
        })
    }

    /// Terms that begin alike, and, for what nobody knows, those that it may be a mistyping of.
    fn alike(&self, term: &str, is_strange: bool) -> Vec<(u32, f32)> {
        let mut alike = Vec::new();
        if term.len() < 4 {
            return alike;
        }
        for &id in &self.name_terms {
            let name = self.text(id);
            let begins = name.starts_with(term)
                || (term.len() >= 5 && name.len() >= 4 && term.starts_with(name));
            if begins && name != term {
                let rest = name.strip_prefix(term).and_then(|rest| self.id(rest));
                alike.push((id, if rest.is_some() { COMPOUND } else { BEGINS_ALIKE }));
            }
        }
        if is_strange && alike.is_empty() {
            let all = (0..).zip(&self.terms);
            let typed = all.map(|(id, known)| (id, likeness(term, &known.text)));
            alike.extend(typed.filter(|(_, likeness)| *likeness > 0.0));
        }
        alike
    }
}

impl Concept {
    /// The better share counts.
    fn extend(&mut self, forms: impl IntoIterator<Item = (u32, f32)>) {
        for (id, share) in forms {
            match self.forms.iter_mut().find(|(known, _)| *known == id) {
                Some((_, known)) => *known = known.max(share),
                None => self.forms.push((id, share)),
            }
        }
    }

    /// How well this term answers it.
    pub(super) fn share(&self, id: u32) -> f32 {
        self.forms.iter().find(|(form, _)| *form == id).map_or(0.0, |(_, share)| *share)
    }
}
