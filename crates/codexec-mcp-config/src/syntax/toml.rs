use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{SyntaxError, number};
use crate::node::{ConfigNode, ConfigValue};

pub(super) fn parse(text: &str) -> Result<ConfigNode, SyntaxError> {
    let lines = LineStarts::of(text);
    match DeTable::parse(text) {
        Ok(root) => Ok(ConfigNode { line: 1, value: convert_table(root.get_ref(), &lines) }),
        Err(error) => {
            let (line, column) = lines.position(error.span().map_or(0, |span| span.start));
            Err(SyntaxError { line, column, what: error.message().to_owned() })
        }
    }
}

/// The byte offset of each line.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> LineStarts {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        LineStarts(std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    fn position(&self, byte: usize) -> (u32, u32) {
        let line = self.0.partition_point(|&start| start <= byte);
        let start = self.0.get(line.saturating_sub(1)).copied().unwrap_or_default();
        (number(line), number(byte - start + 1))
    }
}

/// Restores the file's order of entries, which the parser does not keep.
fn convert_table(entries: &DeTable<'_>, lines: &LineStarts) -> ConfigValue {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let line = lines.position(key.span().start).0;
        (
            key.get_ref().to_string(),
            ConfigNode { line, value: convert_value(value.get_ref(), lines) },
        )
    };
    ConfigValue::Table(entries.into_iter().map(entry).collect())
}

/// Recursion is safe: the parser has limited the depth.
fn convert_value(value: &DeValue<'_>, lines: &LineStarts) -> ConfigValue {
    match value {
        DeValue::String(text) => ConfigValue::Text(text.to_string()),
        DeValue::Integer(number) => ConfigValue::Number(number.to_string()),
        DeValue::Float(number) => ConfigValue::Number(number.to_string()),
        DeValue::Boolean(value) => ConfigValue::Bool(*value),
        DeValue::Datetime(date) => ConfigValue::Text(date.to_string()),
        DeValue::Array(items) => ConfigValue::List(
            items
                .iter()
                .map(|item| ConfigNode {
                    line: lines.position(item.span().start).0,
                    value: convert_value(item.get_ref(), lines),
                })
                .collect(),
        ),
        DeValue::Table(entries) => convert_table(entries, lines),
    }
}
