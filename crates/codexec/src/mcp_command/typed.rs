//! From the texts of flags to JSON values, as the tool's schema wants them.

use serde_json::{Map, Value};

use super::wish::Flag;

/// How deep `anyOf` and its like are looked into.
const MAX_DEPTH: usize = 4;

/// Whether a text could be more than a text, or a name not be the one that the tool knows.
pub(super) fn needs_schema(flags: &[Flag]) -> bool {
    let is_unclear = |text: &String| text.starts_with(['[', '{']) || is_other(text);
    flags.iter().any(|flag| flag.name.contains('-') || flag.value.as_ref().is_some_and(is_unclear))
}

fn is_other(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|value: Value| !value.is_string())
}

/// The arguments in the order of their first flags.
pub(super) fn arguments(flags: &[Flag], schema: Option<&Value>) -> Map<String, Value> {
    let properties = schema.and_then(|schema| schema.get("properties"));
    let mut values: Map<String, Value> = Map::new();
    let mut counts: Map<String, Value> = Map::new();
    for flag in flags {
        let name = known_name(&flag.name, properties);
        let property = properties.and_then(|all| all.get(&name));
        let is_repeated = flags.iter().filter(|other| other.name == flag.name).count() > 1;
        let wanted = if is_repeated { property.and_then(|one| one.get("items")) } else { property };
        let value = match &flag.value {
            None => Value::Bool(true),
            Some(text) => typed(text, wanted),
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

/// `--issue-number` is `issue_number` where the tool has that and not the other.
fn known_name(name: &str, properties: Option<&Value>) -> String {
    let underscored = name.replace('-', "_");
    let has = |name: &str| properties.is_some_and(|all| all.get(name).is_some());
    if !has(name) && has(&underscored) { underscored } else { name.to_owned() }
}

fn typed(text: &str, schema: Option<&Value>) -> Value {
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
            Value::Array(vec![typed(text, items)])
        }
        // The host says what is wrong with it.
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

/// All types that a schema allows, as far as they are plain to see.
fn collect_types<'a>(schema: &'a Value, depth: usize, types: &mut Vec<&'a str>) {
    match schema.get("type") {
        Some(Value::String(name)) => types.push(name),
        Some(Value::Array(names)) => types.extend(names.iter().filter_map(Value::as_str)),
        Some(_) | None => {}
    }
    let choices = ["enum", "const"].iter().filter_map(|key| schema.get(*key));
    if types.is_empty() && choices.flat_map(each).any(Value::is_string) {
        types.push("string");
    }
    if depth > 0 {
        let parts = ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(*key));
        for part in parts.filter_map(Value::as_array).flatten() {
            collect_types(part, depth - 1, types);
        }
    }
}

fn each(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}
