//! The keywords for objects, and the `unevaluated...` keywords.

use serde_json::{Map, Value};

use super::{BudgetExceeded, Validator, ValueProblem};
use crate::{evaluated::Evaluated, message::PathStep};

impl<'s, 'v> Validator<'s, 'v, '_> {
    pub(super) fn check_object(
        &mut self,
        key: &str,
        rule: &'s Value,
        fields: &'s Map<String, Value>,
        (value, object): (&'v Value, &'v Map<String, Value>),
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        match (key, rule) {
            ("required", Value::Array(names)) => self.check_required(names, object),
            ("properties", Value::Object(schemas)) => {
                self.check_properties(schemas, object, evaluated)
            }
            ("patternProperties", Value::Object(schemas)) => {
                self.check_patterns(schemas, object, evaluated)
            }
            ("additionalProperties", schema) => {
                self.check_additional(schema, fields, object, evaluated)
            }
            ("propertyNames", Value::Object(schema)) => self.check_names(schema, object),
            ("minProperties" | "maxProperties", rule) => {
                Ok(self.check_size(key, rule, object.len(), "fields"))
            }
            ("dependentSchemas" | "dependentRequired" | "dependencies", Value::Object(rules)) => {
                self.check_dependencies(rules, (value, object), evaluated)
            }
            _ => Ok(true),
        }
    }

    fn check_required(
        &mut self,
        names: &'s [Value],
        object: &'v Map<String, Value>,
    ) -> Result<bool, BudgetExceeded> {
        let mut fits = true;
        for name in names.iter().filter_map(Value::as_str) {
            self.budget.take(1)?;
            if !object.contains_key(name) {
                fits = false;
                self.report(ValueProblem::Missing(name));
            }
        }
        Ok(fits)
    }

    fn check_properties(
        &mut self,
        schemas: &'s Map<String, Value>,
        object: &'v Map<String, Value>,
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        let mut fits = true;
        for (name, value) in object {
            self.budget.take(1)?;
            let Some(schema) = schemas.get(name) else { continue };
            if let Some(evaluated) = evaluated {
                evaluated.fields.insert(name);
            }
            fits &= self.apply_at(PathStep::Name(name), schema, value)?;
            if !fits && !self.accepts_problems() {
                break;
            }
        }
        Ok(fits)
    }

    fn check_patterns(
        &mut self,
        schemas: &'s Map<String, Value>,
        object: &'v Map<String, Value>,
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        let mut fits = true;
        for (pattern, schema) in schemas {
            for (name, value) in object {
                if !self.matches_pattern(pattern, name)? {
                    continue;
                }
                if let Some(evaluated) = evaluated {
                    evaluated.fields.insert(name);
                }
                fits &= self.apply_at(PathStep::Name(name), schema, value)?;
            }
        }
        Ok(fits)
    }

    fn check_additional(
        &mut self,
        schema: &'s Value,
        fields: &'s Map<String, Value>,
        object: &'v Map<String, Value>,
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        let schemas = |key| fields.get(key).and_then(Value::as_object);
        let (named, patterns) = (schemas("properties"), schemas("patternProperties"));
        if let Some(evaluated) = evaluated {
            evaluated.has_all_fields = true;
        }
        let (mut fits, mut unknown) = (true, Vec::new());
        'fields: for (name, value) in object {
            self.budget.take(1)?;
            if named.is_some_and(|named| named.contains_key(name)) {
                continue;
            }
            for pattern in patterns.into_iter().flat_map(Map::keys) {
                if self.matches_pattern(pattern, name)? {
                    continue 'fields;
                }
            }
            if *schema == false {
                unknown.push(name.as_str());
            } else {
                fits &= self.apply_at(PathStep::Name(name), schema, value)?;
            }
            if !(self.accepts_problems() || fits && unknown.is_empty()) {
                return Ok(false);
            }
        }
        Ok(self.report_unknown(unknown) && fits)
    }

    fn check_names(
        &mut self,
        schema: &'s Map<String, Value>,
        object: &'v Map<String, Value>,
    ) -> Result<bool, BudgetExceeded> {
        // Names are strings, so only keywords for strings apply.
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
                    self.report(ValueProblem::Unknown(vec![name]));
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
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        let mut fits = true;
        for (name, rule) in rules {
            self.budget.take(1)?;
            if !object.contains_key(name) {
                continue;
            }
            fits &= match rule {
                Value::Array(names) => self.check_required(names, object)?,
                schema => self.apply(schema, value, evaluated.as_deref_mut())?,
            };
        }
        Ok(fits)
    }

    /// Validates what no other keyword of the schema has evaluated.
    pub(super) fn apply_unevaluated(
        &mut self,
        fields: &'s Map<String, Value>,
        value: &'v Value,
        evaluated: &mut Evaluated<'v>,
    ) -> Result<bool, BudgetExceeded> {
        match (value, fields.get("unevaluatedProperties"), fields.get("unevaluatedItems")) {
            (Value::Object(object), Some(schema), _) if !evaluated.has_all_fields => {
                evaluated.has_all_fields = true;
                let (mut fits, mut unknown) = (true, Vec::new());
                for (name, value) in object {
                    self.budget.take(1)?;
                    if evaluated.fields.contains(name.as_str()) {
                        continue;
                    }
                    match schema {
                        Value::Bool(false) => unknown.push(name.as_str()),
                        schema => fits &= self.apply_at(PathStep::Name(name), schema, value)?,
                    }
                }
                Ok(self.report_unknown(unknown) && fits)
            }
            (Value::Array(list), _, Some(schema)) if !evaluated.has_all_items => {
                evaluated.has_all_items = true;
                let mut fits = true;
                for (index, value) in list.iter().enumerate() {
                    if !evaluated.items.contains(&index) {
                        fits &= self.apply_at(PathStep::Index(index), schema, value)?;
                    }
                }
                Ok(fits)
            }
            _ => Ok(true),
        }
    }

    /// Reports unknown fields. Returns true if there are none.
    fn report_unknown(&mut self, unknown: Vec<&'v str>) -> bool {
        let is_valid = unknown.is_empty();
        if !is_valid {
            self.report(ValueProblem::Unknown(unknown));
        }
        is_valid
    }
}
