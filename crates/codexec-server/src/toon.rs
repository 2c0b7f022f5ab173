//! TOON, Token-Oriented Object Notation: JSON values, with the column names of a table written
//! once. Uses only the forms that every version of the specification reads.

use serde_json::{Map, Number, Value};

/// Encodes a value as a document, without a newline at its end.
pub(crate) fn encode(value: &Value) -> String {
    let mut lines = Lines::default();
    match value {
        Value::Object(fields) => lines.fields(fields.iter(), Place::at(0)),
        Value::Array(items) => lines.array("", items, Place::at(0)),
        plain => lines.push(Place::at(0), &cell(plain)),
    }
    lines.text
}

#[derive(Default)]
struct Lines {
    text: String,
}

/// The position of a line. A list item starts with a hyphen at the end of its indentation.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    is_item: bool,
}

impl Place {
    fn at(depth: usize) -> Place {
        Place { depth, is_item: false }
    }

    fn item(depth: usize) -> Place {
        Place { depth, is_item: true }
    }
}

impl Lines {
    fn push(&mut self, place: Place, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let spaces = if place.is_item { place.depth.saturating_sub(1) } else { place.depth };
        self.text.extend(std::iter::repeat_n("  ", spaces));
        if place.is_item {
            self.text.push_str(if line.is_empty() { "-" } else { "- " });
        }
        self.text.push_str(line);
    }

    /// Writes the first field at this position, and the others below it.
    fn fields<'a>(
        &mut self,
        fields: impl Iterator<Item = (&'a String, &'a Value)>,
        mut place: Place,
    ) {
        for (name, value) in fields {
            let name = key(name);
            match value {
                Value::Array(items) => self.array(&name, items, place),
                Value::Object(inner) => {
                    self.push(place, &format!("{name}:"));
                    self.fields(inner.iter(), Place::at(place.depth + 1));
                }
                plain => self.push(place, &format!("{name}: {}", cell(plain))),
            }
            place.is_item = false;
        }
    }

    fn array(&mut self, name: &str, items: &[Value], place: Place) {
        let count = items.len();
        let below = place.depth + 1;
        // Inside a list, an array without a name cannot be a table.
        let is_nameless = place.is_item && name.is_empty();
        if items.is_empty() {
            self.push(place, &format!("{name}[0]:"));
        } else if items.iter().all(is_plain) {
            self.push(place, &format!("{name}[{count}]: {}", row(items.iter())));
        } else if let Some(columns) = columns(items).filter(|_| !is_nameless) {
            let names: Vec<String> = columns.iter().map(|name| key(name)).collect();
            self.push(place, &format!("{name}[{count}]{{{}}}:", names.join(",")));
            for fields in items.iter().filter_map(Value::as_object) {
                let cells = columns.iter().filter_map(|name| fields.get(*name));
                self.push(Place::at(below), &row(cells));
            }
        } else {
            self.push(place, &format!("{name}[{count}]:"));
            for item in items {
                self.item(item, below);
            }
        }
    }

    /// Writes a list item. Its content is indented one level deeper than the list.
    fn item(&mut self, item: &Value, depth: usize) {
        match item {
            Value::Object(fields) if fields.is_empty() => self.push(Place::item(depth + 1), ""),
            Value::Object(fields) => self.fields(fields.iter(), Place::item(depth + 1)),
            // The items of a nameless list are indented below its hyphen, not below its content.
            Value::Array(items) if items.iter().all(is_plain) => {
                self.array("", items, Place::item(depth + 1));
            }
            Value::Array(items) => {
                self.push(Place::item(depth + 1), &format!("[{}]:", items.len()));
                for inner in items {
                    self.item(inner, depth + 1);
                }
            }
            plain => self.push(Place::item(depth + 1), &cell(plain)),
        }
    }
}

fn is_plain(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// Returns the column names if the items are the rows of a table.
fn columns(items: &[Value]) -> Option<Vec<&String>> {
    let first = items.first()?.as_object().filter(|first| !first.is_empty())?;
    let is_row = |fields: &Map<String, Value>| {
        fields.len() == first.len()
            && fields.iter().all(|(name, value)| first.contains_key(name) && is_plain(value))
    };
    let is_table = items.iter().all(|item| item.as_object().is_some_and(is_row));
    is_table.then(|| first.keys().collect())
}

fn row<'a>(cells: impl Iterator<Item = &'a Value>) -> String {
    cells.map(cell).collect::<Vec<_>>().join(",")
}

fn cell(plain: &Value) -> String {
    match plain {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(value) => number(value),
        Value::String(text) if is_bare(text) => text.clone(),
        Value::String(text) => quoted(text),
        // The callers only pass primitives.
        Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// Formats a number without an exponent and trailing zeros.
fn number(number: &Number) -> String {
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

fn key(name: &str) -> String {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_rest = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    match name.starts_with(is_first) && name.chars().all(is_rest) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

fn quoted(text: &str) -> String {
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
