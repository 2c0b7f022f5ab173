//! The keywords for types, numbers and strings.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::{BudgetExceeded, Validator};
use crate::{
    compare::{compare, is_integer, is_multiple},
    examine::TYPES,
    message::{cut, show},
    pattern,
};

impl<'s, 'v> Validator<'s, 'v, '_> {
    pub(super) fn check_type(
        &mut self,
        rule: &'s Value,
        value: &'v Value,
    ) -> Result<bool, BudgetExceeded> {
        match rule {
            Value::String(name) => {
                let fits = is_of_type(value, name);
                if !fits {
                    self.report_text(|| {
                        format!("{} is not of type \"{}\"", show(value), cut(name))
                    });
                }
                Ok(fits)
            }
            Value::Array(names) => {
                self.budget.take(names.len() as u64)?;
                let mut each = names.iter().filter_map(Value::as_str);
                let fits = each.any(|name| is_of_type(value, name));
                if !fits {
                    self.report_text(|| {
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
        // In draft 4, `exclusiveMinimum` and `exclusiveMaximum` are booleans.
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
            self.report_text(|| format!("{number} {problem} {bound}"));
        }
        fits
    }

    pub(super) fn check_text(
        &mut self,
        key: &str,
        rule: &'s Value,
        text: &'v str,
    ) -> Result<bool, BudgetExceeded> {
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
                    self.report_text(|| {
                        format!("{:?} is {problem} than {rule} characters", cut(text))
                    });
                }
                Ok(fits)
            }
            ("pattern", Value::String(pattern)) => {
                let fits = self.matches_pattern(pattern, text)?;
                if !fits {
                    self.report_text(|| {
                        format!("{:?} does not match {:?}", cut(text), cut(pattern))
                    });
                }
                Ok(fits)
            }
            _ => Ok(true),
        }
    }

    /// Returns true if the pattern matches. An unsupported pattern matches everything.
    pub(super) fn matches_pattern(
        &mut self,
        pattern: &str,
        text: &str,
    ) -> Result<bool, BudgetExceeded> {
        let steps = pattern::count_steps(text).ok_or(BudgetExceeded)?;
        self.budget.take(steps)?;
        Ok(self.patterns.get(pattern).is_none_or(|compiled| compiled.is_match(text)))
    }
}

/// Returns true if a value has this type. Every value has an unknown type.
fn is_of_type(value: &Value, name: &str) -> bool {
    if !TYPES.contains(&name) {
        return true;
    }
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && is_integer(number)),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}
