//! Types, numbers and texts.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::{TooMuch, Walk};
use crate::{
    compare::{compare, is_multiple, is_whole},
    examine::TYPES,
    pattern,
    problem::{cut, show},
};

impl<'s, 'v> Walk<'s, 'v, '_> {
    pub(super) fn check_type(
        &mut self,
        rule: &'s Value,
        value: &'v Value,
    ) -> Result<bool, TooMuch> {
        match rule {
            Value::String(name) => {
                let fits = is_of_type(value, name);
                if !fits {
                    self.complain(|| format!("{} is not of type \"{}\"", show(value), cut(name)));
                }
                Ok(fits)
            }
            Value::Array(names) => {
                self.budget.take(names.len() as u64)?;
                let mut each = names.iter().filter_map(Value::as_str);
                let fits = each.any(|name| is_of_type(value, name));
                if !fits {
                    self.complain(|| {
                        format!("{} is not of one of the types {}", show(value), show(rule))
                    });
                }
                Ok(fits)
            }
            _ => Ok(true),
        }
    }

    pub(super) fn check_number(
        &mut self,
        key: &str,
        rule: &'s Value,
        fields: &'s Map<String, Value>,
        number: &'v Number,
    ) -> bool {
        let Value::Number(bound) = rule else { return true };
        // In draft 4 the two that exclude are true or false.
        let is_strict = |key: &str| fields.get(key).is_some_and(|strict| *strict == true);
        let order = compare(number, bound);
        let (fits, problem) = match key {
            "minimum" if is_strict("exclusiveMinimum") => {
                (order == Some(Ordering::Greater), "is less than or equal to the minimum of")
            }
            "exclusiveMinimum" => {
                (order == Some(Ordering::Greater), "is less than or equal to the minimum of")
            }
            "minimum" => (order != Some(Ordering::Less), "is less than the minimum of"),
            "maximum" if is_strict("exclusiveMaximum") => {
                (order == Some(Ordering::Less), "is greater than or equal to the maximum of")
            }
            "exclusiveMaximum" => {
                (order == Some(Ordering::Less), "is greater than or equal to the maximum of")
            }
            "maximum" => (order != Some(Ordering::Greater), "is greater than the maximum of"),
            "multipleOf" => (is_multiple(number, bound), "is not a multiple of"),
            _ => return true,
        };
        if !fits {
            self.complain(|| format!("{number} {problem} {bound}"));
        }
        fits
    }

    pub(super) fn check_text(
        &mut self,
        key: &str,
        rule: &'s Value,
        text: &'v str,
    ) -> Result<bool, TooMuch> {
        match (key, rule) {
            ("minLength" | "maxLength", rule) => {
                let Some(bound) = rule.as_f64() else { return Ok(true) };
                self.budget.take(text.len() as u64 / 64)?;
                #[expect(clippy::cast_precision_loss, reason = "no text is that long")]
                let length = text.chars().count() as f64;
                let (fits, problem) = match key {
                    "minLength" => (length >= bound, "shorter"),
                    _ => (length <= bound, "longer"),
                };
                if !fits {
                    self.complain(|| {
                        format!("{:?} is {problem} than {rule} characters", cut(text))
                    });
                }
                Ok(fits)
            }
            ("pattern", Value::String(wanted)) => {
                let fits = self.fits_pattern(wanted, text)?;
                if !fits {
                    self.complain(|| format!("{:?} does not match {:?}", cut(text), cut(wanted)));
                }
                Ok(fits)
            }
            _ => Ok(true),
        }
    }

    /// Whether a text matches. A pattern that cannot be used matches everything.
    pub(super) fn fits_pattern(&mut self, wanted: &str, text: &str) -> Result<bool, TooMuch> {
        let steps = pattern::count_steps(text).ok_or(TooMuch)?;
        self.budget.take(steps)?;
        Ok(self.patterns.get(wanted).is_none_or(|compiled| compiled.is_match(text)))
    }
}

/// A type that nobody knows is every value's.
fn is_of_type(value: &Value, name: &str) -> bool {
    if !TYPES.contains(&name) {
        return true;
    }
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && is_whole(number)),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}
