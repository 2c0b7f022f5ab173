//! Text to tree, for the three languages that these files are written in.

mod json;
mod toml;
mod yaml;

use std::path::Path;

use super::{Client, dialect::Dialect, node::Node};

/// Deeper than anybody writes, and far from the end of the stack.
const MAX_DEPTH: usize = 64;
/// More values than this, and the tree would take more memory than a file of settings may.
const MAX_VALUES: usize = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// With a byte order mark, comments and trailing commas borne.
    Json,
    Toml,
    Yaml,
}

/// Why a text is not what it should be, and where.
#[derive(Debug, PartialEq)]
pub(super) struct SyntaxError {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) what: String,
}

impl Syntax {
    pub(super) fn of(client: Client, path: &Path) -> Syntax {
        let is_toml = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
        match client {
            Client::Named if is_toml => Syntax::Toml,
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

    /// Claude Code keeps its history beside its servers; the others keep settings.
    pub(super) fn max_bytes(self) -> u64 {
        match self {
            Syntax::Json => 32 << 20,
            Syntax::Toml | Syntax::Yaml => 1 << 20,
        }
    }

    pub(super) fn parse(self, text: &str) -> Result<Node, SyntaxError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            Syntax::Json => json::parse(text),
            Syntax::Toml => toml::parse(text),
            Syntax::Yaml => yaml::parse(text),
        }
    }
}

fn number(position: impl TryInto<u32>) -> u32 {
    position.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
