//! English words for Chinese, Japanese and Korean ones, read from `bilingual.txt`: most tools are
//! described in English, whatever their users speak.

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    kana::{fold_spelling, is_katakana},
    words::is_hangul,
};

const TEXT: &str = include_str!("bilingual.txt");

struct Dictionary {
    /// By words in their folded spelling.
    meanings: HashMap<String, Vec<&'static str>>,
    longest_chars: usize,
}

/// A part of a run of characters: a word with its English meanings, best first, or characters
/// without any.
#[derive(Debug, PartialEq)]
pub(super) enum RunPart<'a> {
    Known(&'a str, &'static [&'static str]),
    Unknown(&'a str),
}

/// Splits a run in its folded spelling into the longest words of the dictionary, from its beginning.
pub(super) fn split_run(run: &str) -> Vec<RunPart<'_>> {
    static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(read_dictionary);
    let mut parts = Vec::new();
    let (mut rest, mut unknown_from, mut at) = (run, 0, 0);
    while let Some(first) = rest.chars().next() {
        let found = DICTIONARY.longest_word(rest).filter(|(word, _)| {
            let before = run.get(..at).and_then(|before| before.chars().next_back());
            is_word_here(word, before, unknown_from < at)
        });
        let length = match found {
            Some((word, meanings)) => {
                parts.extend(unknown_part(run, unknown_from, at));
                parts.push(RunPart::Known(word, meanings));
                unknown_from = at + word.len();
                word.len()
            }
            None => first.len_utf8(),
        };
        at += length;
        rest = run.get(at..).unwrap_or_default();
    }
    parts.extend(unknown_part(run, unknown_from, at));
    parts
}

/// Returns true if these characters are a word of their own after `before`. A single syllable
/// inside a Korean word is seldom one, nor are two letters inside an unknown loan word: `サンプル`
/// does not contain `プル`.
fn is_word_here(word: &str, before: Option<char>, is_after_unknown: bool) -> bool {
    let length = word.chars().count();
    match before {
        None => true,
        Some(_) if word.starts_with(is_hangul) => length > 1,
        Some(before) if word.starts_with(is_katakana) => {
            length > 2 || !is_after_unknown || !is_katakana(before)
        }
        Some(_) => true,
    }
}

fn unknown_part(run: &str, begin: usize, end: usize) -> Option<RunPart<'_>> {
    run.get(begin..end).filter(|text| !text.is_empty()).map(RunPart::Unknown)
}

impl Dictionary {
    /// Returns the longest word that the text begins with.
    fn longest_word<'a>(
        &'static self,
        text: &'a str,
    ) -> Option<(&'a str, &'static [&'static str])> {
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        let ends: Vec<usize> = ends.take(self.longest_chars).collect();
        ends.into_iter().rev().find_map(|end| {
            let word = text.get(..end)?;
            Some((word, self.meanings.get(word)?.as_slice()))
        })
    }
}

fn read_dictionary() -> Dictionary {
    let mut dictionary = Dictionary { meanings: HashMap::new(), longest_chars: 0 };
    let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
    for (words, english) in lines.filter_map(|line| line.split_once(" : ")) {
        for word in words.split_whitespace() {
            let word = fold_spelling(word);
            let length = word.chars().count();
            dictionary.longest_chars = dictionary.longest_chars.max(length);
            let meanings = dictionary.meanings.entry(word.into_owned()).or_default();
            let new = english.split_whitespace().filter(|english| !meanings.contains(english));
            let new: Vec<&str> = new.collect();
            meanings.extend(new);
        }
    }
    dictionary
}

#[cfg(test)]
mod tests;
