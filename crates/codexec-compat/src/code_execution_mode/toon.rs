//! TOON, Token-Oriented Object Notation: JSON values, with the column names of a table written
//! once. Uses only the forms that every version of the specification reads.

use serde_json::{Map, Number, Value};

/// Encodes a value as a document, without a newline at its end.
pub(super) fn encode(value: &Value) -> String {
    let mut writer = ToonWriter::default();
    match value {
        Value::Object(fields) => writer.fields(fields.iter(), LinePosition::at(0)),
        Value::Array(items) => writer.array("", items, LinePosition::at(0)),
        primitive => writer.push(LinePosition::at(0), &encode_primitive(primitive)),
    }
    writer.text
}

#[derive(Default)]
struct ToonWriter {
    text: String,
}

/// The position of a line. A list item starts with a hyphen at the end of its indentation.
#[derive(Clone, Copy)]
struct LinePosition {
    depth: usize,
    is_item: bool,
}

impl LinePosition {
    fn at(depth: usize) -> LinePosition {
        LinePosition { depth, is_item: false }
    }

    fn item(depth: usize) -> LinePosition {
        LinePosition { depth, is_item: true }
    }
}

impl ToonWriter {
    fn push(&mut self, position: LinePosition, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let spaces =
            if position.is_item { position.depth.saturating_sub(1) } else { position.depth };
        self.text.extend(std::iter::repeat_n("  ", spaces));
        if position.is_item {
            self.text.push_str(if line.is_empty() { "-" } else { "- " });
        }
        self.text.push_str(line);
    }

    /// Writes the first field at this position, and the others below it.
    fn fields<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a String, &'a Value)>,
        mut position: LinePosition,
    ) {
        for (name, value) in fields {
            let name = encode_key(name);
            match value {
                Value::Array(items) => self.array(&name, items, position),
                Value::Object(inner) => {
                    self.push(position, &format!("{name}:"));
                    self.fields(inner.iter(), LinePosition::at(position.depth + 1));
                }
                primitive => {
                    self.push(position, &format!("{name}: {}", encode_primitive(primitive)));
                }
            }
            position.is_item = false;
        }
    }

    fn array(&mut self, name: &str, items: &[Value], position: LinePosition) {
        let count = items.len();
        let below = position.depth + 1;
        // Inside a list, an array without a name cannot be a table.
        let is_nameless = position.is_item && name.is_empty();
        if items.is_empty() {
            self.push(position, &format!("{name}[0]:"));
        } else if items.iter().all(is_primitive) {
            self.push(position, &format!("{name}[{count}]: {}", encode_row(items.iter())));
        } else if let Some(columns) = table_columns(items).filter(|_| !is_nameless) {
            let names: Vec<String> = columns.iter().map(|name| encode_key(name)).collect();
            self.push(position, &format!("{name}[{count}]{{{}}}:", names.join(",")));
            for fields in items.iter().filter_map(Value::as_object) {
                let cells = columns.iter().filter_map(|name| fields.get(*name));
                self.push(LinePosition::at(below), &encode_row(cells));
            }
        } else {
            self.push(position, &format!("{name}[{count}]:"));
            for item in items {
                self.item(item, below);
            }
        }
    }

    /// Writes a list item. Its content is indented one level deeper than the list.
    fn item(&mut self, item: &Value, depth: usize) {
        match item {
            Value::Object(fields) if fields.is_empty() => {
                self.push(LinePosition::item(depth + 1), "");
            }
            Value::Object(fields) => self.fields(fields.iter(), LinePosition::item(depth + 1)),
            // The items of a nameless list are indented below its hyphen, not below its content.
            Value::Array(items) if items.iter().all(is_primitive) => {
                self.array("", items, LinePosition::item(depth + 1));
            }
            Value::Array(items) => {
                self.push(LinePosition::item(depth + 1), &format!("[{}]:", items.len()));
                for inner in items {
                    self.item(inner, depth + 1);
                }
            }
            primitive => self.push(LinePosition::item(depth + 1), &encode_primitive(primitive)),
        }
    }
}

fn is_primitive(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// Returns the column names if the items are the rows of a table.
fn table_columns(items: &[Value]) -> Option<Vec<&String>> {
    let first = items.first()?.as_object().filter(|first| !first.is_empty())?;
    let is_row = |fields: &Map<String, Value>| {
        fields.len() == first.len()
            && fields.iter().all(|(name, value)| first.contains_key(name) && is_primitive(value))
    };
    let is_table = items.iter().all(|item| item.as_object().is_some_and(is_row));
    is_table.then(|| first.keys().collect())
}

fn encode_row<'a>(cells: impl Iterator<Item = &'a Value>) -> String {
    cells.map(encode_primitive).collect::<Vec<_>>().join(",")
}

fn encode_primitive(primitive: &Value) -> String {
    match primitive {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(value) => encode_number(value),
        Value::String(text) if is_bare(text) => text.clone(),
        Value::String(text) => quote(text),
        // The callers only pass primitives.
        Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// Formats a number without an exponent and trailing zeros.
fn encode_number(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(0.0) => "0".to_owned(),
        Some(float) => format!("{float}"),
        None => number.to_string(),
    }
}

/// True if the text can be written without quotes and still be read as that text.
fn is_bare(text: &str) -> bool {
    let is_odd =
        |c: char| c.is_control() || matches!(c, ':' | '"' | '\\' | '[' | ']' | '{' | '}' | ',');
    let is_space = |c: char| c.is_whitespace() || c == '\u{feff}';
    let is_word = matches!(text, "true" | "false" | "null");
    !text.is_empty()
        && !text.starts_with(is_space)
        && !text.ends_with(is_space)
        && !text.starts_with(['-', '#'])
        && !text.contains(is_odd)
        && !is_word
        && !looks_like_number(text)
}

fn looks_like_number(text: &str) -> bool {
    let of_numbers = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    text.starts_with(|c: char| c.is_ascii_digit() || c == '+') && text.chars().all(of_numbers)
}

fn encode_key(name: &str) -> String {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_rest = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    match name.starts_with(is_first) && name.chars().all(is_rest) {
        true => name.to_owned(),
        false => quote(name),
    }
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;
