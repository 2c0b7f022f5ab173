use super::*;

/// Clients and records contain these codes.
#[test]
fn every_limit_has_a_unique_code() {
    let all = [
        Limit::Wall,
        Limit::Cpu,
        Limit::Memory,
        Limit::Processes,
        Limit::OpenFiles,
        Limit::Disk,
        Limit::Output,
        Limit::ToolCalls,
    ];
    assert_eq!(
        all.map(Limit::code),
        [
            "TIMEOUT",
            "CPU_LIMIT",
            "MEMORY_LIMIT",
            "PROCESS_LIMIT",
            "OPEN_FILES_LIMIT",
            "DISK_LIMIT",
            "OUTPUT_LIMIT",
            "MAX_TOOL_CALLS_EXCEEDED",
        ]
    );
}
