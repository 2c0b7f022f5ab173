//! Checks arguments against a tool's input schema. Error messages say how to fix the call.

use codexec_schema::{CheckError, Checker, list_parameters};
use codexec_types::{clean_line, cut_text};
use serde_json::Value;

/// The result of a quick check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArgumentCheck {
    Valid,
    /// One sentence for each problem, then the list of parameters.
    Invalid(String),
    /// The check needs more work than fits between two events of the event loop.
    Unfinished,
}

/// Checks with a budget small enough for the event loop.
pub(crate) fn check_quickly(checker: &Checker, schema: &Value, args: &Value) -> ArgumentCheck {
    match checker.check_quickly(schema, args, "") {
        Ok(()) => ArgumentCheck::Valid,
        Err(CheckError::Wrong(wrong)) => ArgumentCheck::Invalid(explain_flaws(schema, &wrong)),
        Err(CheckError::TooMuch) => ArgumentCheck::Unfinished,
    }
}

/// Checks with the full budget. Arguments that exceed it pass: the server itself checks them.
pub(crate) fn check(checker: &Checker, schema: &Value, args: &Value) -> Result<(), String> {
    match checker.check(schema, args, "") {
        Ok(()) | Err(CheckError::TooMuch) => Ok(()),
        Err(CheckError::Wrong(wrong)) => Err(explain_flaws(schema, &wrong)),
    }
}

fn explain_flaws(schema: &Value, wrong: &[String]) -> String {
    let sentences = wrong.iter().map(|sentence| cut_text(&clean_line(sentence), 400));
    let parameters = cut_text(&clean_line(&list_parameters(schema)), 700);
    sentences.chain([parameters]).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
