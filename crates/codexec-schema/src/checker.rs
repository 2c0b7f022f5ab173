use serde_json::Value;

use crate::{pattern::Patterns, walk::Validator};

/// The budget of a check off the event loop: about a tenth of a second.
const STEPS: u64 = 3_000_000;
/// The budget of a check on the event loop: less than a millisecond.
const QUICK_STEPS: u64 = 10_000;

/// A checker of values against schemas, with a bounded cache of compiled patterns.
#[derive(Debug, Default)]
pub struct Checker {
    patterns: Patterns,
}

/// The reason why a check failed.
#[derive(Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The first few problems of the value, a sentence each, in the order of the schema.
    Wrong(Vec<String>),
    /// The budget is used up, or schema and value are nested too deeply.
    TooMuch,
}

impl Checker {
    /// Checks a value. `root` is the name of the value in messages: with `input`, its field `path`
    /// is `input.path`; with an empty root, `path`.
    ///
    /// THREAT[ORD-2]: the number of steps is limited, whatever the schema and the value are.
    pub fn check(&self, schema: &Value, value: &Value, root: &str) -> Result<(), CheckError> {
        self.check_within(STEPS, schema, value, root)
    }

    /// Checks a value with a budget that is small enough for the event loop.
    pub fn check_quickly(
        &self,
        schema: &Value,
        value: &Value,
        root: &str,
    ) -> Result<(), CheckError> {
        self.check_within(QUICK_STEPS, schema, value, root)
    }

    fn check_within(
        &self,
        steps: u64,
        schema: &Value,
        value: &Value,
        root: &str,
    ) -> Result<(), CheckError> {
        let mut validator = Validator::new(schema, &self.patterns, steps);
        match validator.apply(schema, value, None) {
            Ok(true) => Ok(()),
            Ok(false) => Err(CheckError::Wrong(validator.render_problems(root))),
            Err(_) => Err(CheckError::TooMuch),
        }
    }
}

#[cfg(test)]
mod tests;
