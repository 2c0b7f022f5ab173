use serde::Serialize;

use crate::Launch;
use crate::seccomp::{self, Calls};

/// What a process that enters a worker from outside has to do to itself, as data: limits to set
/// and a filter to load, after it has taken on the worker's namespaces and dropped everything
/// else. For zygotes that are not ours.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Numbers of resources, and their limits.
    rlimits: Vec<(u32, u64)>,
    /// The program for seccomp, hexadecimal.
    filter: String,
    /// The layers that may be missing.
    lowered: Vec<&'static str>,
}

impl Entry {
    /// `None` if no filter can be made for this machine.
    pub fn new(launch: &Launch) -> Option<Entry> {
        let has_room = launch.room.is_some();
        let calls = if has_room { Calls::Programs } else { Calls::Interpreter };
        let filter = seccomp::bytes(&seccomp::program(calls)?);
        Some(Entry {
            rlimits: launch.rlimits.numbers(),
            filter: filter.iter().map(|byte| format!("{byte:02x}")).collect(),
            lowered: launch.lowered.iter().map(|layer| layer.name()).collect(),
        })
    }
}
