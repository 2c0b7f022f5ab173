//! What a search for tools can be asked besides its words.

use serde::{Deserialize, Serialize};

/// How much of each tool an answer shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    Names,
    #[default]
    Summary,
    Full,
}

/// Which tools, by what their servers say of them. A tool of which nothing is said may change
/// and destroy things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    #[default]
    Any,
    /// Those that change nothing.
    ReadOnly,
    /// Those that may change things, but destroy none.
    Safe,
    Destructive,
}

impl Detail {
    pub const ALL: [(&'static str, Detail); 3] =
        [("names", Detail::Names), ("summary", Detail::Summary), ("full", Detail::Full)];
}

impl ToolKind {
    /// Those that leave something out.
    pub const NARROW: [(&'static str, ToolKind); 3] = [
        ("read_only", ToolKind::ReadOnly),
        ("safe", ToolKind::Safe),
        ("destructive", ToolKind::Destructive),
    ];
}
