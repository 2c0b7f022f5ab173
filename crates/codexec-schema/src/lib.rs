//! Checks values against JSON Schemas: the arguments of tool calls and the input of scripts.
//!
//! Schemas and values both come from people we do not trust, so nothing here works longer than its
//! budget of steps, goes deeper than a fixed number of levels, or follows a reference out of the
//! schema. Formats are not checked.

mod checker;
mod compare;
mod evaluated;
mod examine;
mod pattern;
mod problem;
mod walk;

pub use checker::{Checker, Flaw};
pub use examine::examine;
pub use problem::list_parameters;
