//! Parsers for the three languages of config files.

mod json;
mod toml;
mod yaml;

use std::path::Path;

use super::{ConfigOwner, dialect::Dialect, node::ConfigNode};

/// Maximum nesting: more than any real file has, and too little to overflow the stack.
const MAX_DEPTH: usize = 64;
/// Maximum number of values, which bounds the memory that the tree takes.
const MAX_VALUES: usize = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// JSON that may have a byte order mark, comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

/// A syntax error and its position.
#[derive(Debug, PartialEq)]
pub(super) struct SyntaxError {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) what: String,
}

impl Syntax {
    pub(super) fn of(client: ConfigOwner, path: &Path) -> Syntax {
        let is_toml = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
        match client {
            ConfigOwner::Named if is_toml => Syntax::Toml,
            _ => Dialect::of(client).syntax,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Syntax::Json => "JSON",
            Syntax::Toml => "TOML",
            Syntax::Yaml => "YAML",
        }
    }

    /// Returns the maximum size of a file. Claude Code's JSON file also holds its history.
    pub(super) fn max_bytes(self) -> u64 {
        match self {
            Syntax::Json => 32 << 20,
            Syntax::Toml | Syntax::Yaml => 1 << 20,
        }
    }

    pub(super) fn parse(self, text: &str) -> Result<ConfigNode, SyntaxError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            Syntax::Json => json::parse(text),
            Syntax::Toml => toml::parse(text),
            Syntax::Yaml => yaml::parse(text),
        }
    }
}

/// Converts a position to `u32`, saturating.
fn number(position: impl TryInto<u32>) -> u32 {
    position.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
