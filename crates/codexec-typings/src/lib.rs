//! Type declarations for tools in the guest's language, from their JSON schemas or, where a tool
//! declares no output schema, from the shapes of its results.
//!
//! Invariant: whatever a schema contains, the output is one line or one well-formed declaration of
//! at most 4 KiB, without invisible characters, and no text can end the comment or string that it
//! is in. Pure functions: no I/O, no clock.

mod typings;

mod schema_reader;

mod model;

mod merge;
mod recursion;
mod references;

mod detail;
mod names;
mod notes;

mod bash;
mod python;
mod typescript;

mod output_shape;

pub use output_shape::OutputShape;
use typings::TypedTool;
pub use typings::{Typings, TypingsLanguage};
