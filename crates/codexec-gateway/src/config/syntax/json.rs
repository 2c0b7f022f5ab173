//! JSON as people write it: comments and commas before a closing bracket are borne.

use super::{MAX_DEPTH, MAX_VALUES, SyntaxError, number};
use crate::config::node::{Node, Tree};

struct Reader<'a> {
    rest: &'a str,
    line: u32,
    /// What is left of the text where the present line begins.
    line_start: usize,
    values: usize,
}

type Read<T> = Result<T, SyntaxError>;

pub(super) fn parse(text: &str) -> Read<Node> {
    let mut reader = Reader { rest: text, line: 1, line_start: text.len(), values: 0 };
    let root = reader.value(MAX_DEPTH)?;
    reader.blanks()?;
    match reader.rest.chars().next() {
        None => Ok(root),
        Some(c) => Err(reader.wrong(format!("{c:?} stands after the end"))),
    }
}

impl Reader<'_> {
    fn wrong(&self, what: impl Into<String>) -> SyntaxError {
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

    fn blanks(&mut self) -> Read<()> {
        loop {
            let text = self.rest;
            let bytes = if text.starts_with("//") {
                text.find('\n').unwrap_or(text.len())
            } else if text.starts_with("/*") {
                let end = text.find("*/").ok_or_else(|| self.wrong("a comment has no end"))?;
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

    fn value(&mut self, depth: usize) -> Read<Node> {
        self.blanks()?;
        self.values += 1;
        if depth == 0 {
            return Err(self.wrong(format!("it is nested deeper than {MAX_DEPTH}")));
        }
        if self.values > MAX_VALUES {
            return Err(self.wrong(format!("it has more than {MAX_VALUES} values")));
        }
        let line = self.line;
        let value = match self.rest.bytes().next() {
            None => return Err(self.wrong("it ends too early")),
            Some(b'{') => self.table(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Tree::Text(self.string()?),
            Some(_) => self.word()?,
        };
        Ok(Node { line, value })
    }

    fn table(&mut self, depth: usize) -> Read<Tree> {
        self.take(1);
        let mut entries = Vec::new();
        loop {
            self.blanks()?;
            match self.rest.bytes().next() {
                Some(b'}') => break,
                Some(b'"') => {}
                Some(_) => return Err(self.wrong("a key in double quotes is expected")),
                None => return Err(self.wrong("it ends inside an object")),
            }
            let line = self.line;
            let key = self.string()?;
            self.blanks()?;
            if !self.rest.starts_with(':') {
                return Err(self.wrong("`:` is expected after a key"));
            }
            self.take(1);
            let value = self.value(depth - 1)?.value;
            entries.push((key, Node { line, value }));
            if !self.comma('}')? {
                break;
            }
        }
        self.take(1);
        Ok(Tree::Table(entries))
    }

    fn list(&mut self, depth: usize) -> Read<Tree> {
        self.take(1);
        let mut items = Vec::new();
        loop {
            self.blanks()?;
            if self.rest.starts_with(']') {
                break;
            }
            items.push(self.value(depth - 1)?);
            if !self.comma(']')? {
                break;
            }
        }
        self.take(1);
        Ok(Tree::List(items))
    }

    /// Takes a comma; `false` when the closing bracket stands there instead.
    fn comma(&mut self, close: char) -> Read<bool> {
        self.blanks()?;
        if self.rest.starts_with(',') {
            self.take(1);
            return Ok(true);
        }
        if self.rest.starts_with(close) {
            return Ok(false);
        }
        Err(self.wrong(format!("`,` or `{close}` is expected")))
    }

    fn string(&mut self) -> Read<String> {
        let length = string_length(self.rest);
        let length = length.ok_or_else(|| self.wrong("a string has no end on its line"))?;
        let quoted = self.rest.get(..length).unwrap_or_default();
        let text = serde_json::from_str(quoted);
        let text = text.map_err(|_| {
            self.wrong("a string has a character or escape that JSON does not know")
        })?;
        self.take(length);
        Ok(text)
    }

    fn word(&mut self) -> Read<Tree> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
        let length = self.rest.find(|c: char| !is_part(c)).unwrap_or(self.rest.len());
        let word = self.rest.get(..length).unwrap_or_default();
        let value = match word {
            "true" => Tree::Bool(true),
            "false" => Tree::Bool(false),
            "null" => Tree::Null,
            _ if serde_json::from_str::<serde_json::Number>(word).is_ok() => {
                Tree::Number(word.to_owned())
            }
            _ => return Err(self.wrong("a value is expected")),
        };
        self.take(length);
        Ok(value)
    }
}

/// How long the string is that starts here, quotes included.
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
