//! Fields, and what nothing else has looked at.

use serde_json::{Map, Value};

use super::{Problem, TooMuch, Walk};
use crate::{evaluated::Evaluated, problem::Step};

impl<'s, 'v> Walk<'s, 'v, '_> {
    pub(super) fn check_object(
        &mut self,
        key: &str,
        rule: &'s Value,
        fields: &'s Map<String, Value>,
        (value, object): (&'v Value, &'v Map<String, Value>),
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        match (key, rule) {
            ("required", Value::Array(names)) => self.check_required(names, object),
            ("properties", Value::Object(schemas)) => self.check_properties(schemas, object, seen),
            ("patternProperties", Value::Object(schemas)) => {
                self.check_patterns(schemas, object, seen)
            }
            ("additionalProperties", schema) => self.check_additional(schema, fields, object, seen),
            ("propertyNames", Value::Object(schema)) => self.check_names(schema, object),
            ("minProperties" | "maxProperties", rule) => {
                Ok(self.check_size(key, rule, object.len(), "fields"))
            }
            ("dependentSchemas" | "dependentRequired" | "dependencies", Value::Object(rules)) => {
                self.check_dependencies(rules, (value, object), seen)
            }
            _ => Ok(true),
        }
    }

    fn check_required(
        &mut self,
        names: &'s [Value],
        object: &'v Map<String, Value>,
    ) -> Result<bool, TooMuch> {
        let mut fits = true;
        for name in names.iter().filter_map(Value::as_str) {
            self.budget.take(1)?;
            if !object.contains_key(name) {
                fits = false;
                self.report(Problem::Missing(name));
            }
        }
        Ok(fits)
    }

    fn check_properties(
        &mut self,
        schemas: &'s Map<String, Value>,
        object: &'v Map<String, Value>,
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        let mut fits = true;
        for (name, value) in object {
            self.budget.take(1)?;
            let Some(schema) = schemas.get(name) else { continue };
            if let Some(seen) = seen {
                seen.fields.insert(name);
            }
            fits &= self.apply_at(Step::Name(name), schema, value)?;
            if !fits && !self.wants_more() {
                break;
            }
        }
        Ok(fits)
    }

    fn check_patterns(
        &mut self,
        schemas: &'s Map<String, Value>,
        object: &'v Map<String, Value>,
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        let mut fits = true;
        for (pattern, schema) in schemas {
            for (name, value) in object {
                if !self.fits_pattern(pattern, name)? {
                    continue;
                }
                if let Some(seen) = seen {
                    seen.fields.insert(name);
                }
                fits &= self.apply_at(Step::Name(name), schema, value)?;
            }
        }
        Ok(fits)
    }

    fn check_additional(
        &mut self,
        schema: &'s Value,
        fields: &'s Map<String, Value>,
        object: &'v Map<String, Value>,
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        let schemas = |key| fields.get(key).and_then(Value::as_object);
        let (named, patterns) = (schemas("properties"), schemas("patternProperties"));
        if let Some(seen) = seen {
            seen.has_all_fields = true;
        }
        let (mut fits, mut unknown) = (true, Vec::new());
        'fields: for (name, value) in object {
            self.budget.take(1)?;
            if named.is_some_and(|named| named.contains_key(name)) {
                continue;
            }
            for pattern in patterns.into_iter().flat_map(Map::keys) {
                if self.fits_pattern(pattern, name)? {
                    continue 'fields;
                }
            }
            if *schema == false {
                unknown.push(name.as_str());
            } else {
                fits &= self.apply_at(Step::Name(name), schema, value)?;
            }
            if !(self.wants_more() || fits && unknown.is_empty()) {
                return Ok(false);
            }
        }
        Ok(self.know_all(unknown) && fits)
    }

    fn check_names(
        &mut self,
        schema: &'s Map<String, Value>,
        object: &'v Map<String, Value>,
    ) -> Result<bool, TooMuch> {
        // Names are no values, so only rules for texts are applied to them.
        for name in object.keys() {
            for (key, rule) in schema {
                self.budget.take(1)?;
                let fits = match (key.as_str(), rule) {
                    ("enum", Value::Array(options)) => {
                        self.budget.take(options.len() as u64)?;
                        options.iter().any(|option| option == name.as_str())
                    }
                    (key, rule) => self.check_text(key, rule, name)?,
                };
                if !fits {
                    self.report(Problem::Unknown(vec![name]));
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn check_dependencies(
        &mut self,
        rules: &'s Map<String, Value>,
        (value, object): (&'v Value, &'v Map<String, Value>),
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        let mut fits = true;
        for (name, rule) in rules {
            self.budget.take(1)?;
            if !object.contains_key(name) {
                continue;
            }
            fits &= match rule {
                Value::Array(names) => self.check_required(names, object)?,
                schema => self.apply(schema, value, seen.as_deref_mut())?,
            };
        }
        Ok(fits)
    }

    /// What no keyword beside it, and none below it in the same place, has looked at.
    pub(super) fn apply_unevaluated(
        &mut self,
        fields: &'s Map<String, Value>,
        value: &'v Value,
        seen: &mut Evaluated<'v>,
    ) -> Result<bool, TooMuch> {
        match (value, fields.get("unevaluatedProperties"), fields.get("unevaluatedItems")) {
            (Value::Object(object), Some(schema), _) if !seen.has_all_fields => {
                seen.has_all_fields = true;
                let (mut fits, mut unknown) = (true, Vec::new());
                for (name, value) in object {
                    self.budget.take(1)?;
                    if seen.fields.contains(name.as_str()) {
                        continue;
                    }
                    match schema {
                        Value::Bool(false) => unknown.push(name.as_str()),
                        schema => fits &= self.apply_at(Step::Name(name), schema, value)?,
                    }
                }
                Ok(self.know_all(unknown) && fits)
            }
            (Value::Array(list), _, Some(schema)) if !seen.has_all_items => {
                seen.has_all_items = true;
                let mut fits = true;
                for (index, value) in list.iter().enumerate() {
                    if !seen.items.contains(&index) {
                        fits &= self.apply_at(Step::Index(index), schema, value)?;
                    }
                }
                Ok(fits)
            }
            _ => Ok(true),
        }
    }

    /// Whether there is no field too many.
    fn know_all(&mut self, unknown: Vec<&'v str>) -> bool {
        let knows_all = unknown.is_empty();
        if !knows_all {
            self.report(Problem::Unknown(unknown));
        }
        knows_all
    }
}
