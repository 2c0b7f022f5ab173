//! Equality of JSON values as in JSON Schema: `1` equals `1.0`, and the order of fields does not
//! matter.

use std::{
    cmp::Ordering,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::{Number, Value};

use crate::walk::{BudgetExceeded, StepBudget};

pub(crate) fn equal(a: &Value, b: &Value, budget: &mut StepBudget) -> Result<bool, BudgetExceeded> {
    budget.take(1)?;
    Ok(match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Some(Ordering::Equal),
        (Value::String(a), Value::String(b)) => {
            budget.take(a.len().min(b.len()) as u64 / 64)?;
            a == b
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b) {
                if !equal(a, b, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Object(a), Value::Object(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (name, a) in a {
                match b.get(name) {
                    Some(b) if equal(a, b, budget)? => {}
                    Some(_) | None => return Ok(false),
                }
            }
            true
        }
        (a, b) => a == b,
    })
}

/// Hashes a value. Equal values have equal hashes.
pub(crate) fn hash(value: &Value, budget: &mut StepBudget) -> Result<u64, BudgetExceeded> {
    budget.take(1)?;
    let mut hasher = DefaultHasher::new();
    match value {
        Value::Null => 0_u8.hash(&mut hasher),
        Value::Bool(truth) => truth.hash(&mut hasher),
        // Equal numbers are equal as floats, too.
        Value::Number(number) => (number.as_f64().unwrap_or(0.0) + 0.0).to_bits().hash(&mut hasher),
        Value::String(text) => {
            budget.take(text.len() as u64 / 64)?;
            text.hash(&mut hasher);
        }
        Value::Array(list) => {
            for value in list {
                hash(value, budget)?.hash(&mut hasher);
            }
        }
        Value::Object(fields) => {
            let mut all: u64 = 1;
            for (name, value) in fields {
                let mut field = DefaultHasher::new();
                name.hash(&mut field);
                hash(value, budget)?.hash(&mut field);
                all = all.wrapping_add(field.finish());
            }
            all.hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}

pub(crate) fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (to_integer(a), to_integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

pub(crate) fn is_multiple(number: &Number, of: &Number) -> bool {
    match (to_integer(number), to_integer(of)) {
        (_, Some(0)) => true,
        (Some(number), Some(of)) => number % of == 0,
        _ => {
            let (Some(number), Some(of)) = (number.as_f64(), of.as_f64()) else { return true };
            let times = number / of;
            !times.is_finite() || (times - times.round()).abs() < 1e-9 * times.abs().max(1.0)
        }
    }
}

pub(crate) fn is_integer(number: &Number) -> bool {
    to_integer(number).is_some() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn to_integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}
