//! Validates a schema for its author, before any value is checked against it.

use serde_json::{Map, Value};

use crate::{
    message::{cut, show},
    pattern,
    walk::find_target,
};

/// The maximum number of parts, with every reference followed.
const MAX_PARTS: usize = 20_000;
const MAX_DEPTH: usize = 64;

pub(crate) const TYPES: [&str; 7] =
    ["null", "boolean", "object", "array", "number", "string", "integer"];

/// Finds the problem of a schema: invalid keywords, unsupported patterns, references that are
/// circular or leave the schema, or more levels or parts than a check supports.
pub fn validate_schema(schema: &Value) -> Result<(), String> {
    let mut examiner = SchemaExaminer { root: schema, left: MAX_PARTS, followed: Vec::new() };
    examiner.examine_schema(schema, 0)
}

struct SchemaExaminer<'s> {
    root: &'s Value,
    left: usize,
    /// The targets of the references that led to the current schema.
    followed: Vec<&'s Value>,
}

impl<'s> SchemaExaminer<'s> {
    fn examine_schema(&mut self, schema: &'s Value, depth: usize) -> Result<(), String> {
        self.count_part(depth)?;
        let fields = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            other => return Err(format!("{} is not a schema", show(other))),
        };
        for (key, rule) in fields {
            self.count_part(depth)?;
            self.examine_keyword(key, rule, depth).map_err(|problem| match problem.is_empty() {
                true => format!("`{}` cannot be {}", cut(key), show(rule)),
                false => problem,
            })?;
        }
        Ok(())
    }

    /// Examines one keyword. An empty error means that its value has the wrong type.
    fn examine_keyword(&mut self, key: &str, rule: &'s Value, depth: usize) -> Result<(), String> {
        let is_valid = match (key, rule) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", to) => return self.follow(to, depth),
            ("type", Value::String(name)) => TYPES.contains(&name.as_str()),
            ("type", Value::Array(names)) => {
                names.iter().all(|name| TYPES.iter().any(|known| name == known))
            }
            ("enum", rule) => rule.is_array(),
            ("required", Value::Array(names)) => names.iter().all(Value::is_string),
            (
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
                | "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" | "minContains" | "maxContains",
                rule,
            ) => rule.is_number(),
            ("pattern", Value::String(text)) => return check_pattern(text),
            ("properties" | "dependentSchemas", Value::Object(schemas)) => {
                return self.each(schemas.values(), depth);
            }
            ("patternProperties", Value::Object(schemas)) => {
                schemas.keys().try_for_each(|text| check_pattern(text))?;
                return self.each(schemas.values(), depth);
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                return self.each(schemas.iter(), depth);
            }
            ("items", Value::Array(schemas)) => return self.each(schemas.iter(), depth),
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames"
                | "unevaluatedProperties"
                | "unevaluatedItems",
                schema,
            ) => return self.examine_schema(schema, depth + 1),
            ("dependentRequired", rule) => rule.is_object(),
            ("dependencies", rule) => {
                let rules = rule.as_object().map(Map::values).into_iter().flatten();
                return self.each(rules.filter(|rule| !rule.is_array()), depth);
            }
            (
                "type" | "required" | "pattern" | "properties" | "dependentSchemas"
                | "patternProperties" | "allOf" | "anyOf" | "oneOf" | "prefixItems",
                _,
            ) => false,
            // Definitions are examined where they are referenced; unknown keywords are ignored.
            _ => true,
        };
        if is_valid { Ok(()) } else { Err(String::new()) }
    }

    fn each(
        &mut self,
        schemas: impl Iterator<Item = &'s Value>,
        depth: usize,
    ) -> Result<(), String> {
        for schema in schemas {
            self.examine_schema(schema, depth + 1)?;
        }
        Ok(())
    }

    fn follow(&mut self, to: &'s Value, depth: usize) -> Result<(), String> {
        let Some(target) = find_target(self.root, to) else {
            return Err(format!("the reference {} does not point into the schema", show(to)));
        };
        if self.followed.iter().any(|known| std::ptr::eq(*known, target))
            || std::ptr::eq(target, self.root)
        {
            return Err(format!("the reference {} is circular", show(to)));
        }
        self.followed.push(target);
        let result = self.examine_schema(target, depth + 1);
        self.followed.pop();
        result
    }

    fn count_part(&mut self, depth: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            format!("it has more than {MAX_PARTS} parts, counting the target of each reference")
        })?;
        if depth > MAX_DEPTH {
            return Err(format!("it has more than {MAX_DEPTH} levels"));
        }
        Ok(())
    }
}

fn check_pattern(text: &str) -> Result<(), String> {
    match pattern::compile(text) {
        Some(_) => Ok(()),
        None => Err(format!(
            "the pattern {:?} is invalid, too large, or not supported (look-around, back \
             references)",
            cut(text)
        )),
    }
}

#[cfg(test)]
mod tests;
