//! The keywords for arrays.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{BudgetExceeded, Validator};
use crate::{
    compare::{equal, hash},
    evaluated::Evaluated,
    message::PathStep,
};

impl<'s, 'v> Validator<'s, 'v, '_> {
    pub(super) fn check_array(
        &mut self,
        key: &str,
        rule: &'s Value,
        fields: &'s Map<String, Value>,
        list: &'v [Value],
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        match (key, rule) {
            // Before 2020-12, a list of schemas under `items` meant `prefixItems`.
            ("prefixItems" | "items", Value::Array(schemas)) => {
                let mut fits = true;
                for (index, (schema, value)) in schemas.iter().zip(list).enumerate() {
                    if let Some(evaluated) = evaluated {
                        evaluated.items.insert(index);
                    }
                    fits &= self.apply_at(PathStep::Index(index), schema, value)?;
                }
                Ok(fits)
            }
            ("items", rule) => {
                let before =
                    fields.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                self.check_rest(rule, list, before, evaluated)
            }
            ("additionalItems", rule) => match fields.get("items") {
                Some(Value::Array(schemas)) => {
                    self.check_rest(rule, list, schemas.len(), evaluated)
                }
                Some(_) | None => Ok(true),
            },
            ("contains", rule) => self.check_contains(rule, fields, list, evaluated),
            ("uniqueItems", Value::Bool(true)) => self.check_unique(list),
            ("minItems" | "maxItems", rule) => Ok(self.check_size(key, rule, list.len(), "items")),
            _ => Ok(true),
        }
    }

    fn check_rest(
        &mut self,
        schema: &'s Value,
        list: &'v [Value],
        before: usize,
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        if let Some(evaluated) = evaluated {
            evaluated.has_all_items = true;
        }
        let mut fits = true;
        for (index, value) in list.iter().enumerate().skip(before) {
            fits &= self.apply_at(PathStep::Index(index), schema, value)?;
            if !fits && !self.accepts_problems() {
                break;
            }
        }
        Ok(fits)
    }

    fn check_contains(
        &mut self,
        schema: &'s Value,
        fields: &'s Map<String, Value>,
        list: &'v [Value],
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        let bound = |key| fields.get(key).and_then(Value::as_u64);
        let (least, most) = (bound("minContains").unwrap_or(1), bound("maxContains"));
        let mut count = 0;
        for (index, value) in list.iter().enumerate() {
            if self.try_one(schema, value, &mut None)? {
                count += 1;
                if let Some(evaluated) = evaluated {
                    evaluated.items.insert(index);
                }
            }
        }
        let fits = count >= least && most.is_none_or(|most| count <= most);
        if !fits {
            self.report_text(|| format!("{count} of its items match `contains`"));
        }
        Ok(fits)
    }

    fn check_unique(&mut self, list: &'v [Value]) -> Result<bool, BudgetExceeded> {
        let mut known: HashMap<u64, Vec<&Value>> = HashMap::new();
        for value in list {
            let same_hash = known.entry(hash(value, &mut self.budget)?).or_default();
            for other in same_hash.iter() {
                if equal(other, value, &mut self.budget)? {
                    self.report_text(|| "has the same item twice".to_owned());
                    return Ok(false);
                }
            }
            same_hash.push(value);
        }
        Ok(true)
    }

    pub(super) fn check_size(
        &mut self,
        key: &str,
        rule: &'s Value,
        size: usize,
        what: &str,
    ) -> bool {
        let Some(bound) = rule.as_f64() else { return true };
        #[expect(clippy::cast_precision_loss, reason = "no size is that large")]
        let found = size as f64;
        let (fits, problem) = match key.starts_with("min") {
            true => (found >= bound, "at least"),
            false => (found <= bound, "at most"),
        };
        if !fits {
            self.report_text(|| format!("has {size} {what}; {problem} {rule} are allowed"));
        }
        fits
    }

    /// Validates a part of the value, one step below the current path.
    pub(super) fn apply_at(
        &mut self,
        step: PathStep<'v>,
        schema: &'s Value,
        value: &'v Value,
    ) -> Result<bool, BudgetExceeded> {
        self.path.push(step);
        let fits = self.apply(schema, value, None);
        self.path.pop();
        fits
    }
}
