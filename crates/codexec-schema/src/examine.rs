//! Whether a schema is one: for people who write schemas, before anything is checked against them.

use serde_json::{Map, Value};

use crate::{pattern, problem::show, walk::find_target};

/// With every reference followed.
const STEPS: usize = 20_000;
const DEPTH: usize = 64;

pub(crate) const TYPES: [&str; 7] =
    ["null", "boolean", "object", "array", "number", "string", "integer"];

/// Says what is wrong with a schema: rules that are none, patterns that cannot be run, references
/// that lead out of it or back to where they are, more levels or parts than a check would manage.
pub fn examine(schema: &Value) -> Result<(), String> {
    let mut look = Look { root: schema, left: STEPS, followed: Vec::new() };
    look.at(schema, 0)
}

struct Look<'s> {
    root: &'s Value,
    left: usize,
    /// The references that led to where we are.
    followed: Vec<&'s Value>,
}

impl<'s> Look<'s> {
    fn at(&mut self, schema: &'s Value, depth: usize) -> Result<(), String> {
        self.step(depth)?;
        let fields = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            other => return Err(format!("{} stands where a schema should", show(other))),
        };
        for (key, rule) in fields {
            self.step(depth)?;
            self.rule(key, rule, depth).map_err(|why| match why.is_empty() {
                true => format!("`{}` cannot be {}", crate::problem::cut(key), show(rule)),
                false => why,
            })?;
        }
        Ok(())
    }

    /// An empty error stands for a rule of the wrong kind.
    fn rule(&mut self, key: &str, rule: &'s Value, depth: usize) -> Result<(), String> {
        let fits = match (key, rule) {
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
            ("pattern", Value::String(text)) => return usable(text),
            ("properties" | "dependentSchemas", Value::Object(schemas)) => {
                return self.each(schemas.values(), depth);
            }
            ("patternProperties", Value::Object(schemas)) => {
                schemas.keys().try_for_each(|text| usable(text))?;
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
            ) => return self.at(schema, depth + 1),
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
            // Looked at where they are referred to; and what we do not know is a note.
            _ => true,
        };
        if fits { Ok(()) } else { Err(String::new()) }
    }

    fn each(
        &mut self,
        schemas: impl Iterator<Item = &'s Value>,
        depth: usize,
    ) -> Result<(), String> {
        for schema in schemas {
            self.at(schema, depth + 1)?;
        }
        Ok(())
    }

    fn follow(&mut self, to: &'s Value, depth: usize) -> Result<(), String> {
        let Some(target) = find_target(self.root, to) else {
            return Err(format!("the reference {} leads to no place in it", show(to)));
        };
        if self.followed.iter().any(|known| std::ptr::eq(*known, target))
            || std::ptr::eq(target, self.root)
        {
            return Err(format!("the reference {} leads back to where it stands", show(to)));
        }
        self.followed.push(target);
        let looked = self.at(target, depth + 1);
        self.followed.pop();
        looked
    }

    fn step(&mut self, depth: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            format!("it has more than {STEPS} parts, each reference counted as what it leads to")
        })?;
        if depth > DEPTH {
            return Err(format!("it has more than {DEPTH} levels"));
        }
        Ok(())
    }
}

fn usable(text: &str) -> Result<(), String> {
    match pattern::compile(text) {
        Some(_) => Ok(()),
        None => Err(format!(
            "the pattern {:?} is too large, or has something in it that cannot be checked quickly \
             (look-around, back references)",
            crate::problem::cut(text)
        )),
    }
}

#[cfg(test)]
mod tests;
