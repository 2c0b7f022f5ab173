//! A tool's schema as one line of TypeScript: what a model reads fastest and a guest writes by.

use serde_json::Value;

use crate::clean::clean_line;

const DEPTH: u32 = 4;
const LINE_BYTES: usize = 4 << 10;
const ENUM_VALUES: usize = 20;

/// `get_issue(args: { owner: string; number?: number }): Promise<unknown>`
pub(crate) fn signature(name: &str, input: &Value, output: Option<&Value>) -> String {
    let mut writer = Writer { root: input, refs: Vec::new(), out: String::new() };
    writer.out.push_str(&property_name(name));
    writer.out.push('(');
    let properties = input.get("properties").and_then(Value::as_object);
    if properties.is_some_and(|properties| !properties.is_empty()) || is_union(input) {
        let has_required =
            input.get("required").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        writer.out.push_str(if has_required { "args: " } else { "args?: " });
        writer.write(input, DEPTH);
    }
    writer.out.push_str("): Promise<");
    match output {
        Some(output) => {
            writer.root = output;
            writer.write(output, DEPTH);
        }
        None => writer.out.push_str("unknown"),
    }
    writer.out.push('>');
    writer.out
}

struct Writer<'a> {
    root: &'a Value,
    /// The references being followed: one that leads back ends the walk.
    refs: Vec<&'a str>,
    out: String,
}

impl<'a> Writer<'a> {
    fn write(&mut self, schema: &'a Value, depth: u32) {
        if depth == 0 || self.out.len() > LINE_BYTES {
            self.out.push_str("unknown");
            return;
        }
        if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
            return self.write_reference(to, depth);
        }
        if let Some(value) = schema.get("const") {
            return self.out.push_str(&literal(value));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let shown: Vec<String> = values.iter().take(ENUM_VALUES).map(literal).collect();
            let more = if values.len() > ENUM_VALUES { " | string" } else { "" };
            return self.out.push_str(&format!("{}{more}", shown.join(" | ")));
        }
        for (key, joint) in [("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")] {
            if let Some(parts) = schema.get(key).and_then(Value::as_array)
                && schema.get("properties").is_none()
            {
                return self.write_joined(parts, joint, depth);
            }
        }
        match schema.get("type") {
            Some(Value::Array(types)) => self.write_types(types, schema, depth),
            Some(Value::String(name)) => self.write_type(name, schema, depth),
            _ if schema.get("properties").is_some() => self.write_type("object", schema, depth),
            _ if schema.get("items").is_some() => self.write_type("array", schema, depth),
            _ => self.out.push_str("unknown"),
        }
    }

    fn write_reference(&mut self, to: &'a str, depth: u32) {
        let target = to.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        match target {
            Some(target) if !self.refs.contains(&to) => {
                self.refs.push(to);
                self.write(target, depth);
                self.refs.pop();
            }
            Some(_) | None => self.out.push_str("unknown"),
        }
    }

    fn write_joined(&mut self, parts: &'a [Value], joint: &str, depth: u32) {
        for (at, part) in parts.iter().take(ENUM_VALUES).enumerate() {
            if at > 0 {
                self.out.push_str(joint);
            }
            self.write(part, depth - 1);
        }
        if parts.is_empty() {
            self.out.push_str("unknown");
        }
    }

    fn write_types(&mut self, types: &'a [Value], schema: &'a Value, depth: u32) {
        let names = types.iter().filter_map(Value::as_str);
        for (at, name) in names.enumerate() {
            if at > 0 {
                self.out.push_str(" | ");
            }
            self.write_type(name, schema, depth);
        }
    }

    fn write_type(&mut self, name: &str, schema: &'a Value, depth: u32) {
        match name {
            "string" | "boolean" | "null" => self.out.push_str(name),
            "number" | "integer" => self.out.push_str("number"),
            "array" => {
                self.out.push_str("Array<");
                match schema.get("items") {
                    Some(items) => self.write(items, depth - 1),
                    None => self.out.push_str("unknown"),
                }
                self.out.push('>');
            }
            "object" => self.write_object(schema, depth),
            _ => self.out.push_str("unknown"),
        }
    }

    fn write_object(&mut self, schema: &'a Value, depth: u32) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            self.out.push_str("Record<string, ");
            match schema.get("additionalProperties") {
                Some(values @ Value::Object(_)) => self.write(values, depth - 1),
                _ => self.out.push_str("unknown"),
            }
            self.out.push('>');
            return;
        };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|list| list.iter().any(|entry| entry.as_str() == Some(name)))
        };
        self.out.push_str("{ ");
        for (at, (name, value)) in properties.iter().enumerate() {
            if at > 0 {
                self.out.push_str("; ");
            }
            self.out.push_str(&property_name(name));
            self.out.push_str(if is_required(name) { ": " } else { "?: " });
            self.write(value, depth - 1);
        }
        self.out.push_str(" }");
    }
}

fn is_union(schema: &Value) -> bool {
    ["anyOf", "oneOf", "allOf", "$ref"].iter().any(|key| schema.get(key).is_some())
}

/// As it is when it is an identifier, else quoted.
fn property_name(name: &str) -> String {
    let mut characters = name.chars();
    let is_identifier = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_identifier { name.to_owned() } else { quoted(name) }
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => "unknown".to_owned(),
    }
}

/// JSON with everything invisible taken out, so that a line stays a line.
fn quoted(text: &str) -> String {
    Value::String(clean_line(text)).to_string()
}

#[cfg(test)]
mod tests;
