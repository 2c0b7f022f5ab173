use serde::Serialize;

use crate::{Launch, seccomp};

/// What a process that enters a worker from outside has to do to itself, as data: limits to set
/// and filters to load, after it has taken on the worker's namespaces and dropped everything
/// else. For zygotes that are not ours.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Numbers of resources, and their limits.
    rlimits: Vec<(u32, u64)>,
    /// Programs for seccomp, in the order in which they are loaded; hexadecimal.
    filters: Vec<String>,
    /// The layers that may be missing.
    lowered: Vec<&'static str>,
}

impl Entry {
    /// `None` if no filter can be made for this machine.
    pub fn new(launch: &Launch) -> Option<Entry> {
        let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let filters = seccomp::filters(launch.room.is_some()).ok()?;
        Some(Entry {
            rlimits: launch.rlimits.numbers(),
            filters: filters.iter().map(|filter| hex(seccomp::bytes(filter))).collect(),
            lowered: launch.lowered.iter().map(|layer| layer.name()).collect(),
        })
    }
}
