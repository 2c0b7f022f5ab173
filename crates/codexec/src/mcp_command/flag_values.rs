//! Converts flag values to the JSON types in the tool's schema.

use serde_json::{Map, Value};

use super::request::Flag;

/// How many levels of `anyOf`, `oneOf` and `allOf` are searched for types.
const MAX_DEPTH: usize = 4;

/// Returns true if a value could be something other than a string, or a name could need `_` for
/// `-`.
pub(super) fn needs_schema(flags: &[Flag]) -> bool {
    let is_unclear = |text: &String| text.starts_with(['[', '{']) || is_not_string(text);
    flags.iter().any(|flag| flag.name.contains('-') || flag.value.as_ref().is_some_and(is_unclear))
}

fn is_not_string(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|value: Value| !value.is_string())
}

/// Returns the tool's arguments; a repeated flag becomes an array.
pub(super) fn convert_flags(flags: &[Flag], schema: Option<&Value>) -> Map<String, Value> {
    let properties = schema.and_then(|schema| schema.get("properties"));
    let mut values: Map<String, Value> = Map::new();
    let mut counts: Map<String, Value> = Map::new();
    for flag in flags {
        let name = match_name(&flag.name, properties);
        let property = properties.and_then(|all| all.get(&name));
        let is_repeated = flags.iter().filter(|other| other.name == flag.name).count() > 1;
        let target = if is_repeated { property.and_then(|one| one.get("items")) } else { property };
        let value = match &flag.value {
            None => Value::Bool(true),
            Some(text) => convert(text, target),
        };
        if is_repeated {
            let list = counts.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            if let Some(list) = list.as_array_mut() {
                list.push(value);
            }
        } else {
            values.insert(name, value);
        }
    }
    values.extend(counts);
    values
}

/// Maps `--issue-number` to `issue_number` if the tool has only the latter.
fn match_name(name: &str, properties: Option<&Value>) -> String {
    let underscored = name.replace('-', "_");
    let has = |name: &str| properties.is_some_and(|all| all.get(name).is_some());
    if !has(name) && has(&underscored) { underscored } else { name.to_owned() }
}

fn convert(text: &str, schema: Option<&Value>) -> Value {
    let as_text = || Value::String(text.to_owned());
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let mut types = Vec::new();
    if let Some(schema) = schema {
        collect_types(schema, MAX_DEPTH, &mut types);
    }
    let allows = |name: &str| types.contains(&name);
    if types.is_empty() {
        return parsed.unwrap_or_else(as_text);
    }
    if allows("string") && !(allows("null") && text == "null") {
        return as_text();
    }
    match parsed {
        Some(value) if fits(&value, &types) => value,
        Some(_) | None if allows("array") => {
            let items = schema.and_then(|schema| schema.get("items"));
            Value::Array(vec![convert(text, items)])
        }
        // The host reports the type error.
        Some(_) | None => as_text(),
    }
}

fn fits(value: &Value, types: &[&str]) -> bool {
    types.iter().any(|name| match *name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" | "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    })
}

/// Collects the types that a schema allows, as far as `type`, `enum`, `const` and the
/// combinators show them.
fn collect_types<'a>(schema: &'a Value, depth: usize, types: &mut Vec<&'a str>) {
    match schema.get("type") {
        Some(Value::String(name)) => types.push(name),
        Some(Value::Array(names)) => types.extend(names.iter().filter_map(Value::as_str)),
        Some(_) | None => {}
    }
    let choices = ["enum", "const"].iter().filter_map(|key| schema.get(*key));
    if types.is_empty() && choices.flat_map(as_list).any(Value::is_string) {
        types.push("string");
    }
    if depth > 0 {
        let parts = ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(*key));
        for part in parts.filter_map(Value::as_array).flatten() {
            collect_types(part, depth - 1, types);
        }
    }
}

fn as_list(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}
