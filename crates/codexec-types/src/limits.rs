use std::time::Duration;

/// How much one execution may use. Every field is a hard cap, and none is optional:
/// "no limit" is not a value this program can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub wall: Duration,
    pub memory_bytes: u64,
    pub output_bytes: u64,
    pub tool_calls: u32,
}

/// Which cap was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Wall,
    Memory,
    Output,
    ToolCalls,
}

impl Limits {
    pub const DEFAULT: Limits = Limits {
        wall: Duration::from_secs(30),
        memory_bytes: 256 << 20,
        output_bytes: 8 << 20,
        tool_calls: 1_000,
    };
}

impl Limit {
    /// The stable code that clients see.
    pub fn code(self) -> &'static str {
        match self {
            Limit::Wall => "TIMEOUT",
            Limit::Memory => "MEMORY_LIMIT",
            Limit::Output => "OUTPUT_LIMIT",
            Limit::ToolCalls => "MAX_TOOL_CALLS_EXCEEDED",
        }
    }
}
