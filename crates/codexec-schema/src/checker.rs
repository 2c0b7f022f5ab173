use serde_json::Value;

use crate::{pattern::Patterns, walk::Walk};

/// What one check may cost where nobody minds a tenth of a second.
const STEPS: u64 = 3_000_000;
/// What one check may cost on a thread that has other things to do: less than a millisecond.
const QUICK_STEPS: u64 = 10_000;

/// Checks values against schemas. Holds nothing but compiled patterns, a bounded number of them.
#[derive(Debug, Default)]
pub struct Checker {
    patterns: Patterns,
}

/// Why a value was not found to fit.
#[derive(Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The first few things that are wrong, a sentence each, in the order of the schema.
    Wrong(Vec<String>),
    /// The budget was used up before the end, or schema and value go too deep.
    TooMuch,
}

impl Checker {
    /// Checks a value. `root` is how the value is called in sentences: `input` makes
    /// `input.path` of its field `path`, and nothing makes it `path`.
    ///
    /// THREAT[ORD-2]: the work is bounded by steps, whatever the schema and the value are.
    pub fn check(&self, schema: &Value, value: &Value, root: &str) -> Result<(), Flaw> {
        self.check_within(STEPS, schema, value, root)
    }

    /// The same with a budget that is no burden to an event loop.
    pub fn check_quickly(&self, schema: &Value, value: &Value, root: &str) -> Result<(), Flaw> {
        self.check_within(QUICK_STEPS, schema, value, root)
    }

    fn check_within(
        &self,
        steps: u64,
        schema: &Value,
        value: &Value,
        root: &str,
    ) -> Result<(), Flaw> {
        let mut walk = Walk::new(schema, &self.patterns, steps);
        match walk.apply(schema, value, None) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Flaw::Wrong(walk.sentences(root))),
            Err(_) => Err(Flaw::TooMuch),
        }
    }
}

#[cfg(test)]
mod tests;
