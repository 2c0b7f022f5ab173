use std::time::Duration;

/// The resource limits of one execution. Every field is a hard cap, and none is optional: "no
/// limit" cannot be expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub wall: Duration,
    /// CPU time of all processes together.
    pub cpu: Duration,
    /// How long programs may clean up after SIGTERM at the deadline. Zero: they are killed at once.
    pub grace: Duration,
    pub memory_bytes: u64,
    /// Processes and threads together.
    pub processes: u32,
    /// Per process.
    pub open_files: u32,
    /// Bytes in the execution's own files, including temporary ones.
    pub disk_bytes: u64,
    /// Maximum number of files and directories.
    pub disk_files: u32,
    pub output_bytes: u64,
    pub tool_calls: u32,
}

/// The limit that was hit.
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
        grace: Duration::ZERO,
        memory_bytes: 512 << 20,
        processes: 128,
        open_files: 1_024,
        disk_bytes: 256 << 20,
        disk_files: 16_384,
        output_bytes: 4 << 20,
        tool_calls: 1_000,
    };

    /// Returns the CPU time of an execution that may run for `wall`. `cpu` is enough for the
    /// default time; longer executions get more in proportion, because allowed time is also time
    /// to work.
    pub fn cpu_within(&self, wall: Duration) -> Duration {
        let base = Limits::DEFAULT.wall;
        let excess = wall.saturating_sub(base).as_secs_f64() / base.as_secs_f64();
        self.cpu.saturating_add(self.cpu.mul_f64(excess))
    }
}

impl Limit {
    /// Returns the stable code that clients see.
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
