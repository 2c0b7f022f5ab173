use serde::Serialize;

use crate::Launch;
use crate::seccomp::{self, Profile};

/// The limits and the seccomp filter that a process from outside applies to itself after it has
/// entered a worker's namespaces. Plain data, for zygotes that are not our own binary.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerEntry {
    /// Resource numbers and their limits.
    rlimits: Vec<(u32, u64)>,
    /// The seccomp program, in hexadecimal.
    filter: String,
    /// The layers that may be missing.
    lowered: Vec<&'static str>,
}

impl WorkerEntry {
    /// Returns `None` if there is no seccomp filter for this architecture.
    pub fn new(launch: &Launch) -> Option<WorkerEntry> {
        let has_rootfs = launch.rootfs.is_some();
        let profile = if has_rootfs { Profile::Programs } else { Profile::Interpreter };
        let filter = seccomp::to_bytes(&seccomp::compile(profile)?);
        Some(WorkerEntry {
            rlimits: launch.rlimits.numbers(),
            filter: filter.iter().map(|byte| format!("{byte:02x}")).collect(),
            lowered: launch.lowered.iter().map(|layer| layer.name()).collect(),
        })
    }
}
