//! Lists.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{TooMuch, Walk};
use crate::{
    compare::{equal, hash},
    evaluated::Evaluated,
    problem::Step,
};

impl<'s, 'v> Walk<'s, 'v, '_> {
    pub(super) fn check_array(
        &mut self,
        key: &str,
        rule: &'s Value,
        fields: &'s Map<String, Value>,
        list: &'v [Value],
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        match (key, rule) {
            // A list of schemas under `items` is how `prefixItems` was called before 2020.
            ("prefixItems" | "items", Value::Array(schemas)) => {
                let mut fits = true;
                for (index, (schema, value)) in schemas.iter().zip(list).enumerate() {
                    if let Some(seen) = seen {
                        seen.items.insert(index);
                    }
                    fits &= self.apply_at(Step::Index(index), schema, value)?;
                }
                Ok(fits)
            }
            ("items", rule) => {
                let before =
                    fields.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                self.check_rest(rule, list, before, seen)
            }
            ("additionalItems", rule) => match fields.get("items") {
                Some(Value::Array(schemas)) => self.check_rest(rule, list, schemas.len(), seen),
                Some(_) | None => Ok(true),
            },
            ("contains", rule) => self.check_contains(rule, fields, list, seen),
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
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        if let Some(seen) = seen {
            seen.has_all_items = true;
        }
        let mut fits = true;
        for (index, value) in list.iter().enumerate().skip(before) {
            fits &= self.apply_at(Step::Index(index), schema, value)?;
            if !fits && !self.wants_more() {
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
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        let bound = |key| fields.get(key).and_then(Value::as_u64);
        let (least, most) = (bound("minContains").unwrap_or(1), bound("maxContains"));
        let mut count = 0;
        for (index, value) in list.iter().enumerate() {
            if self.try_one(schema, value, &mut None)? {
                count += 1;
                if let Some(seen) = seen {
                    seen.items.insert(index);
                }
            }
        }
        let fits = count >= least && most.is_none_or(|most| count <= most);
        if !fits {
            self.complain(|| format!("{count} of its items are as `contains` wants them"));
        }
        Ok(fits)
    }

    fn check_unique(&mut self, list: &'v [Value]) -> Result<bool, TooMuch> {
        let mut known: HashMap<u64, Vec<&Value>> = HashMap::new();
        for value in list {
            let alike = known.entry(hash(value, &mut self.budget)?).or_default();
            for other in alike.iter() {
                if equal(other, value, &mut self.budget)? {
                    self.complain(|| "has the same item twice".to_owned());
                    return Ok(false);
                }
            }
            alike.push(value);
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
        #[expect(clippy::cast_precision_loss, reason = "nothing here is that long")]
        let found = size as f64;
        let (fits, problem) = match key.starts_with("min") {
            true => (found >= bound, "at least"),
            false => (found <= bound, "at most"),
        };
        if !fits {
            self.complain(|| format!("has {size} {what}; {problem} {rule} are allowed"));
        }
        fits
    }

    /// A part of the value, with its place noted.
    pub(super) fn apply_at(
        &mut self,
        step: Step<'v>,
        schema: &'s Value,
        value: &'v Value,
    ) -> Result<bool, TooMuch> {
        self.path.push(step);
        let fits = self.apply(schema, value, None);
        self.path.pop();
        fits
    }
}
