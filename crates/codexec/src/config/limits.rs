use std::ops::RangeInclusive;
use std::time::Duration;

use codexec_functions::defaults::{MAX_WALL_MS, WALL_MS};
use codexec_types::Limits;

use super::{ConfigError, file};

/// Returns the limits of an execution, and the longest time that a request may ask for.
pub(super) fn limits(file: &file::LimitsSection) -> Result<(Limits, Duration), ConfigError> {
    let default = Limits::DEFAULT;
    let max_ms = within("limits.max-timeout-ms", file.max_timeout_ms, MAX_WALL_MS, 1..=86_400_000)?;
    let wall_ms = within("limits.timeout-ms", file.timeout_ms, WALL_MS.min(max_ms), 1..=max_ms)?;
    let cpu_s = within("limits.cpu-s", file.cpu_s, default.cpu.as_secs(), 1..=86_400)?;
    let grace_s = within("limits.grace-s", file.grace_s, default.grace.as_secs(), 0..=60)?;
    let memory_mib =
        within("limits.memory-mib", file.memory_mib, default.memory_bytes >> 20, 32..=65_536)?;
    let processes = count("limits.processes", file.processes, default.processes, 8..=4_096)?;
    let open_files = count("limits.open-files", file.open_files, default.open_files, 128..=65_536)?;
    let disk_mib = within("limits.disk-mib", file.disk_mib, default.disk_bytes >> 20, 1..=16_384)?;
    let disk_files =
        count("limits.disk-files", file.disk_files, default.disk_files, 64..=1_000_000)?;
    let output_kib =
        within("limits.output-kib", file.output_kib, default.output_bytes >> 10, 1..=65_536)?;
    let tool_calls = count("limits.tool-calls", file.tool_calls, default.tool_calls, 0..=100_000)?;
    let limits = Limits {
        wall: Duration::from_millis(wall_ms),
        cpu: Duration::from_secs(cpu_s),
        grace: Duration::from_secs(grace_s),
        memory_bytes: memory_mib << 20,
        processes,
        open_files,
        disk_bytes: disk_mib << 20,
        disk_files,
        output_bytes: output_kib << 10,
        tool_calls,
    };
    Ok((limits, Duration::from_millis(max_ms)))
}

pub(super) fn within(
    key: &'static str,
    value: Option<u64>,
    default: u64,
    range: RangeInclusive<u64>,
) -> Result<u64, ConfigError> {
    let value = value.unwrap_or(default);
    if range.contains(&value) {
        return Ok(value);
    }
    Err(ConfigError::Range { key, value, min: *range.start(), max: *range.end() })
}

fn count(
    key: &'static str,
    value: Option<u64>,
    default: u32,
    range: RangeInclusive<u64>,
) -> Result<u32, ConfigError> {
    within(key, value, default.into(), range).map(|value| u32::try_from(value).unwrap_or(u32::MAX))
}
