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

#[test]
fn more_time_means_more_cpu_time() {
    let limits = Limits { cpu: Duration::from_secs(120), ..Limits::DEFAULT };
    for (wall_s, cpu_s) in [(1, 120), (30, 120), (60, 240), (300, 1_200), (86_400, 345_600)] {
        let cpu = limits.cpu_within(Duration::from_secs(wall_s));
        assert_eq!(cpu, Duration::from_secs(cpu_s), "{wall_s} s");
    }
}
