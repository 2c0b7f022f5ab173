//! The library of saved scripts: plain files that people read and edit, and an index beside them.
//!
//! ```text
//! scripts/index.json                        all metadata, made from the folders
//! scripts/parse-report/script.py            the code as it is now
//! scripts/parse-report/metadata.json
//! scripts/parse-report/versions/3/..        the same two files, for every save
//! ```
//!
//! The folders are the truth and the index is made from them, so whoever edits a script, copies a
//! folder in or throws one away by hand is understood. Several servers may share the folder.
//!
//! Invariant: no file outside of the folder is opened, no link is followed, and nothing is ever
//! half written: what is replaced is replaced in one step.

mod catalogue;
mod dir;
mod draft;
mod error;
mod folder;
mod library;
mod lock;
mod meta;
mod name;
mod parameters;
mod search;
mod words;

pub use draft::Draft;
pub use error::{Broken, Problem, ScriptError};
pub use folder::{Script, Version};
pub use library::{Filter, Library, Listed, Saved};
pub use meta::Meta;
pub use search::{Hit, Relevance};
