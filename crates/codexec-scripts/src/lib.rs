//! The library of saved scripts: plain files that people can read and edit, and an index of them.
//!
//! ```text
//! scripts/index.json                        all metadata, generated from the folders
//! scripts/parse-report/script.py            the current code
//! scripts/parse-report/metadata.json
//! scripts/parse-report/versions/3/..        the same two files, for every save
//! ```
//!
//! The folders are the source of truth and the index is generated from them. So people can edit
//! scripts, and copy or delete folders by hand. Several servers may share the library.
//!
//! Invariant: no file outside of the library is opened, no symlink is followed, and every file is
//! replaced atomically.

mod dir;
mod draft;
mod error;
mod folder;
mod library;
mod lock;
mod meta;
mod name;
mod parameters;
mod script_index;
mod search;
mod words;

pub use draft::ScriptDraft;
pub use error::{FieldProblem, ScriptError, ScriptFileError};
pub use folder::{Script, ScriptVersion};
pub use library::{Library, SavedScript, ScriptFilter, ScriptPage};
pub use meta::ScriptMeta;
pub use search::{MatchedField, ScriptMatch};
