use std::time::Duration;

/// How much one execution may use. Every field is a hard cap, and none is optional:
/// "no limit" is not a value this program can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub wall: Duration,
    /// Of all its processes together.
    pub cpu: Duration,
    pub memory_bytes: u64,
    /// Processes and threads together.
    pub processes: u32,
    /// In each process.
    pub open_files: u32,
    /// What its own files may hold, temporary ones included.
    pub disk_bytes: u64,
    /// How many files and directories it may have.
    pub disk_files: u32,
    pub output_bytes: u64,
    pub tool_calls: u32,
}

/// Which cap was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Wall,
    Cpu,
    Memory,
    Processes,
    OpenFiles,
    Disk,
    Output,
    ToolCalls,
}

impl Limits {
    pub const DEFAULT: Limits = Limits {
        wall: Duration::from_secs(30),
        cpu: Duration::from_secs(120),
        memory_bytes: 512 << 20,
        processes: 128,
        open_files: 1_024,
        disk_bytes: 256 << 20,
        disk_files: 16_384,
        output_bytes: 4 << 20,
        tool_calls: 1_000,
    };
}

impl Limit {
    /// The stable code that clients see.
    pub fn code(self) -> &'static str {
        match self {
            Limit::Wall => "TIMEOUT",
            Limit::Cpu => "CPU_LIMIT",
            Limit::Memory => "MEMORY_LIMIT",
            Limit::Processes => "PROCESS_LIMIT",
            Limit::OpenFiles => "OPEN_FILES_LIMIT",
            Limit::Disk => "DISK_LIMIT",
            Limit::Output => "OUTPUT_LIMIT",
            Limit::ToolCalls => "MAX_TOOL_CALLS_EXCEEDED",
        }
    }
}

#[cfg(test)]
mod tests;
