//! Arguments against a tool's schema, with a message that says how to write them right.

use codexec_schema::{Checker, Flaw, list_parameters};
use serde_json::Value;

use crate::clean::{clean_line, cut};

/// What one check gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    Fine,
    /// What is wrong, a sentence for each thing, and which parameters there are.
    Wrong(String),
    /// More work than an event loop can do between two events.
    Unfinished,
}

/// Checks with a budget that is no burden to the event loop.
pub(crate) fn check_quickly(checker: &Checker, schema: &Value, args: &Value) -> Checked {
    match checker.check_quickly(schema, args, "") {
        Ok(()) => Checked::Fine,
        Err(Flaw::Wrong(wrong)) => Checked::Wrong(explain(schema, &wrong)),
        Err(Flaw::TooMuch) => Checked::Unfinished,
    }
}

/// Checks with all the budget there is. What would take more is let through: the server itself
/// will judge.
pub(crate) fn check(checker: &Checker, schema: &Value, args: &Value) -> Result<(), String> {
    match checker.check(schema, args, "") {
        Ok(()) | Err(Flaw::TooMuch) => Ok(()),
        Err(Flaw::Wrong(wrong)) => Err(explain(schema, &wrong)),
    }
}

fn explain(schema: &Value, wrong: &[String]) -> String {
    let sentences = wrong.iter().map(|sentence| cut(&clean_line(sentence), 400));
    let parameters = cut(&clean_line(&list_parameters(schema)), 700);
    sentences.chain([parameters]).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
