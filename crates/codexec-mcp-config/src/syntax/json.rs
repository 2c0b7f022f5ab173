//! A JSON parser that allows comments and trailing commas.

use super::{MAX_DEPTH, MAX_VALUES, SyntaxError, number};
use crate::node::{ConfigNode, ConfigValue};

struct JsonReader<'a> {
    rest: &'a str,
    line: u32,
    /// The length of the remaining text at the start of the current line.
    line_start: usize,
    values: usize,
}

type Read<T> = Result<T, SyntaxError>;

pub(super) fn parse(text: &str) -> Read<ConfigNode> {
    let mut reader = JsonReader { rest: text, line: 1, line_start: text.len(), values: 0 };
    let root = reader.read_value(MAX_DEPTH)?;
    reader.skip_blanks()?;
    match reader.rest.chars().next() {
        None => Ok(root),
        Some(c) => Err(reader.error(format!("unexpected {c:?} after the end"))),
    }
}

impl JsonReader<'_> {
    fn error(&self, what: impl Into<String>) -> SyntaxError {
        let column = number(self.line_start.saturating_sub(self.rest.len()) + 1);
        SyntaxError { line: self.line, column, what: what.into() }
    }

    fn take(&mut self, bytes: usize) -> &str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        let lines = taken.bytes().filter(|&b| b == b'\n').count();
        if lines > 0 {
            self.line += number(lines);
            let after = taken.rfind('\n').map_or(0, |at| taken.len() - at - 1);
            self.line_start = rest.len() + after;
        }
        self.rest = rest;
        taken
    }

    fn skip_blanks(&mut self) -> Read<()> {
        loop {
            let text = self.rest;
            let bytes = if text.starts_with("//") {
                text.find('\n').unwrap_or(text.len())
            } else if text.starts_with("/*") {
                let end = text.find("*/").ok_or_else(|| self.error("unterminated comment"))?;
                end + 2
            } else {
                text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len())
            };
            if bytes == 0 {
                return Ok(());
            }
            self.take(bytes);
        }
    }

    fn read_value(&mut self, depth: usize) -> Read<ConfigNode> {
        self.skip_blanks()?;
        self.values += 1;
        if depth == 0 {
            return Err(self.error(format!("it is nested deeper than {MAX_DEPTH} levels")));
        }
        if self.values > MAX_VALUES {
            return Err(self.error(format!("it has more than {MAX_VALUES} values")));
        }
        let line = self.line;
        let value = match self.rest.bytes().next() {
            None => return Err(self.error("it ends too early")),
            Some(b'{') => self.read_table(depth)?,
            Some(b'[') => self.read_list(depth)?,
            Some(b'"') => ConfigValue::Text(self.read_string()?),
            Some(_) => self.read_word()?,
        };
        Ok(ConfigNode { line, value })
    }

    fn read_table(&mut self, depth: usize) -> Read<ConfigValue> {
        self.take(1);
        let mut entries = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.rest.bytes().next() {
                Some(b'}') => break,
                Some(b'"') => {}
                Some(_) => return Err(self.error("a key in double quotes is expected")),
                None => return Err(self.error("it ends inside an object")),
            }
            let line = self.line;
            let key = self.read_string()?;
            self.skip_blanks()?;
            if !self.rest.starts_with(':') {
                return Err(self.error("`:` is expected after a key"));
            }
            self.take(1);
            let value = self.read_value(depth - 1)?.value;
            entries.push((key, ConfigNode { line, value }));
            if !self.take_comma('}')? {
                break;
            }
        }
        self.take(1);
        Ok(ConfigValue::Table(entries))
    }

    fn read_list(&mut self, depth: usize) -> Read<ConfigValue> {
        self.take(1);
        let mut items = Vec::new();
        loop {
            self.skip_blanks()?;
            if self.rest.starts_with(']') {
                break;
            }
            items.push(self.read_value(depth - 1)?);
            if !self.take_comma(']')? {
                break;
            }
        }
        self.take(1);
        Ok(ConfigValue::List(items))
    }

    /// Consumes a comma; returns false if the closing bracket comes instead.
    fn take_comma(&mut self, close: char) -> Read<bool> {
        self.skip_blanks()?;
        if self.rest.starts_with(',') {
            self.take(1);
            return Ok(true);
        }
        if self.rest.starts_with(close) {
            return Ok(false);
        }
        Err(self.error(format!("`,` or `{close}` is expected")))
    }

    fn read_string(&mut self) -> Read<String> {
        let length = string_length(self.rest);
        let length = length.ok_or_else(|| self.error("unterminated string"))?;
        let quoted = self.rest.get(..length).unwrap_or_default();
        let inside = quoted.get(1..length - 1).unwrap_or_default();
        // Nearly all strings have no escapes.
        let text = if inside.bytes().all(|b| b != b'\\' && b >= b' ') {
            inside.to_owned()
        } else {
            let what = "a string has an invalid character or escape";
            serde_json::from_str(quoted).map_err(|_| self.error(what))?
        };
        self.take(length);
        Ok(text)
    }

    fn read_word(&mut self) -> Read<ConfigValue> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
        let length = self.rest.find(|c: char| !is_part(c)).unwrap_or(self.rest.len());
        let word = self.rest.get(..length).unwrap_or_default();
        let value = match word {
            "true" => ConfigValue::Bool(true),
            "false" => ConfigValue::Bool(false),
            "null" => ConfigValue::Null,
            _ if serde_json::from_str::<serde_json::Number>(word).is_ok() => {
                ConfigValue::Number(word.to_owned())
            }
            _ => return Err(self.error("a value is expected")),
        };
        self.take(length);
        Ok(value)
    }
}

/// Returns the length of the string that starts here, quotes included.
fn string_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'\n' => return None,
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}
