//! Full-text search over tools: BM25 over weighted fields, with stemming, a thesaurus, a dictionary
//! of Chinese, Japanese and Korean words, loan words by their sound, and typo tolerance; then a
//! bonus for matches in the tool's and the server's name.
//!
//! Invariant: a pure function of the tools' texts and the query. Equal input gives the same order,
//! and long texts are cut, so that no tool and no query can make a search slow.

mod bilingual;
mod index;
mod kana;
mod loan_words;
mod stem;
mod thesaurus;
mod typos;
mod words;

pub use index::{GOOD_MATCH, ToolDocument, ToolIndex};
pub use thesaurus::load_thesaurus;
