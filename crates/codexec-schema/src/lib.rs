//! Checks values against JSON Schemas: the arguments of tool calls and the input of scripts.
//!
//! Schemas and values are both untrusted. So every check has a budget of steps and a maximum depth,
//! and references outside of the schema are not followed. `format` is not checked.

mod checker;
mod compare;
mod evaluated;
mod examine;
mod message;
mod pattern;
mod walk;

pub use checker::{CheckError, Checker};
pub use examine::validate_schema;
pub use message::list_parameters;
