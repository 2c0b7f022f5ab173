//! Regular expressions of schemas. They are written for ECMAScript, but run by an engine without
//! backtracking, so their cost is bounded by the lengths of the text and of the compiled program.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use regex::{Regex, RegexBuilder};

const PATTERN_BYTES: usize = 4 << 10;
/// The limit on a compiled program: about a thousand states.
const PROGRAM_BYTES: usize = 64 << 10;
const CACHE_BYTES: usize = 64 << 10;
/// The number of cached patterns.
const CACHED: usize = 64;
/// A longer text is not matched.
const TEXT_BYTES: usize = 16 << 10;
/// The worst-case cost of matching one byte, in steps of a check.
const STEPS_PER_BYTE: u64 = 16;
const COMPILE_STEPS: u64 = 500;

/// The cache of compiled patterns, including unsupported ones.
#[derive(Debug, Default)]
pub(crate) struct Patterns(Mutex<HashMap<String, Option<Arc<Regex>>>>);

impl Patterns {
    /// Returns the compiled pattern, or `None` if it is invalid, unsupported or too large.
    pub(crate) fn get(&self, pattern: &str) -> Option<Arc<Regex>> {
        if pattern.len() > PATTERN_BYTES {
            return None;
        }
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = cache.get(pattern) {
            return cached.clone();
        }
        let compiled = compile(pattern).map(Arc::new);
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(pattern.to_owned(), compiled.clone());
        compiled
    }
}

/// Returns the cost of a match, or `None` if the text is too long to be matched.
pub(crate) fn count_steps(text: &str) -> Option<u64> {
    (text.len() <= TEXT_BYTES).then(|| COMPILE_STEPS / 10 + text.len() as u64 * STEPS_PER_BYTE)
}

pub(crate) fn compile(pattern: &str) -> Option<Regex> {
    if pattern.len() > PATTERN_BYTES {
        return None;
    }
    RegexBuilder::new(&translate(pattern))
        .size_limit(PROGRAM_BYTES)
        .dfa_size_limit(CACHE_BYTES)
        .build()
        .ok()
}

/// Translates an ECMAScript pattern. ECMAScript's classes are ASCII, and it allows more escapes.
/// Unicode classes would also make programs a hundred times larger.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    let mut is_in_class = false;
    while let Some(c) = chars.next() {
        match (c, is_in_class) {
            ('[', false) => is_in_class = true,
            // In ECMAScript a bracket inside a class is literal; here it would nest a class.
            ('[', true) => out.push('\\'),
            (']', _) => is_in_class = false,
            _ => {}
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        match (chars.next(), is_in_class) {
            (Some('d'), true) => out.push_str("0-9"),
            (Some('d'), false) => out.push_str("[0-9]"),
            (Some('D'), false) => out.push_str("[^0-9]"),
            (Some('w'), true) => out.push_str("0-9A-Za-z_"),
            (Some('w'), false) => out.push_str("[0-9A-Za-z_]"),
            (Some('W'), false) => out.push_str("[^0-9A-Za-z_]"),
            (Some('/'), _) => out.push('/'),
            (Some(other), _) => {
                out.push('\\');
                out.push(other);
            }
            (None, _) => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests;
