//! Options of a search for tools.

use serde::{Deserialize, Serialize};

/// How much of each tool a result shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolDetail {
    Names,
    #[default]
    Summary,
    Full,
}

/// A filter on tools, by the annotations of their servers. A tool without annotations counts as
/// destructive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    #[default]
    Any,
    /// Tools that change nothing.
    ReadOnly,
    /// Tools that may change things, but destroy nothing.
    Safe,
    Destructive,
}

impl ToolDetail {
    pub const ALL: [(&'static str, ToolDetail); 3] = [
        ("names", ToolDetail::Names),
        ("summary", ToolDetail::Summary),
        ("full", ToolDetail::Full),
    ];
}

impl ToolKind {
    /// The kinds that exclude some tools.
    pub const NARROW: [(&'static str, ToolKind); 3] = [
        ("read_only", ToolKind::ReadOnly),
        ("safe", ToolKind::Safe),
        ("destructive", ToolKind::Destructive),
    ];
}
