use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{SyntaxError, number};
use crate::config::node::{Node, Tree};

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let lines = Lines::of(text);
    match DeTable::parse(text) {
        Ok(root) => Ok(Node { line: 1, value: table(root.get_ref(), &lines) }),
        Err(error) => {
            let (line, column) = lines.position(error.span().map_or(0, |span| span.start));
            Err(SyntaxError { line, column, what: error.message().to_owned() })
        }
    }
}

/// Where each line begins.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines(std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    fn position(&self, byte: usize) -> (u32, u32) {
        let line = self.0.partition_point(|&start| start <= byte);
        let start = self.0.get(line.saturating_sub(1)).copied().unwrap_or_default();
        (number(line), number(byte - start + 1))
    }
}

/// In the order of the file, which the parser does not keep.
fn table(entries: &DeTable<'_>, lines: &Lines) -> Tree {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let line = lines.position(key.span().start).0;
        (key.get_ref().to_string(), Node { line, value: tree(value.get_ref(), lines) })
    };
    Tree::Table(entries.into_iter().map(entry).collect())
}

/// The parser has bounded how deep it goes.
fn tree(value: &DeValue<'_>, lines: &Lines) -> Tree {
    match value {
        DeValue::String(text) => Tree::Text(text.to_string()),
        DeValue::Integer(number) => Tree::Number(number.to_string()),
        DeValue::Float(number) => Tree::Number(number.to_string()),
        DeValue::Boolean(value) => Tree::Bool(*value),
        DeValue::Datetime(date) => Tree::Text(date.to_string()),
        DeValue::Array(items) => Tree::List(
            items
                .iter()
                .map(|item| Node {
                    line: lines.position(item.span().start).0,
                    value: tree(item.get_ref(), lines),
                })
                .collect(),
        ),
        DeValue::Table(entries) => table(entries, lines),
    }
}
