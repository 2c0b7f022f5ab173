//! Counts memory process by process, for machines without cgroups.
//!
//! THREAT[RES-9]: anonymous memory, page tables, huge pages and swap all count. Memory that `/proc`
//! does not show cannot be allocated: see `refuse_shared_memory` in the sandbox.

use codexec_sandbox::shares_memory;

use crate::process_tree::{list_tree, read_proc_file};

/// Upper bound of the kernel's buffers for one socket: twice the default of `net.core.wmem_max`.
const SOCKET_BYTES: u64 = 2 * 212_992;
/// Number of sockets that are not counted; few programs have more.
const FREE_SOCKETS: u64 = 64;

/// The memory of one process, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProcessMemory {
    own_bytes: u64,
    /// Mapped pages of files in memory.
    shared_bytes: u64,
}

/// Returns the memory of a process tree. Shared memory is counted once for every process.
pub(super) fn held_bytes(roots: &[i32], disk_bytes: u64) -> u64 {
    let all = list_tree(roots).into_iter().map(|pid| parse_status(&read_proc_file(pid, "status")));
    sum_memory(all, roots, disk_bytes)
}

/// Returns the memory of a process tree, if the guest has started no processes of its own.
pub(super) fn held_bytes_if_alone(roots: &[i32], disk_bytes: u64) -> Option<u64> {
    let all = list_tree(roots);
    let is_alone = all.len() <= roots.len().max(2);
    is_alone.then(|| {
        sum_memory(
            all.into_iter().map(|pid| parse_status(&read_proc_file(pid, "status"))),
            roots,
            disk_bytes,
        )
    })
}

/// Returns the memory of a process tree. Shared memory is counted once.
pub(super) fn held_bytes_exactly(roots: &[i32], disk_bytes: u64) -> u64 {
    let mut seen: Vec<i32> = Vec::new();
    let mut all = Vec::new();
    for pid in list_tree(roots) {
        // Between `vfork` and `exec`, a child shares its parent's memory.
        if !seen.iter().any(|other| shares_memory(*other, pid)) {
            seen.push(pid);
            let shared = parse_smaps_rollup(
                &read_proc_file(pid, "smaps_rollup"),
                read_page_table_bytes(pid),
            );
            // A child that has exited since the tree was read holds nothing.
            all.push(shared.unwrap_or_else(|| parse_status(&read_proc_file(pid, "status"))));
        }
    }
    sum_memory(all.into_iter(), roots, disk_bytes)
}

fn sum_memory(all: impl Iterator<Item = ProcessMemory>, roots: &[i32], disk_bytes: u64) -> u64 {
    let held = all.fold(ProcessMemory::default(), |sum, one| ProcessMemory {
        own_bytes: sum.own_bytes + one.own_bytes,
        shared_bytes: sum.shared_bytes + one.shared_bytes,
    });
    let sockets =
        roots.first().map_or(0, |root| parse_socket_count(&read_proc_file(*root, "net/sockstat")));
    held.own_bytes
        + held.shared_bytes.saturating_sub(disk_bytes)
        + sockets.saturating_sub(FREE_SOCKETS) * SOCKET_BYTES
}

fn read_page_table_bytes(pid: i32) -> u64 {
    parse_kib(&read_proc_file(pid, "status"), "VmPTE:")
}

/// Parses `/proc/<pid>/status`.
fn parse_status(status: &str) -> ProcessMemory {
    let own = ["RssAnon:", "VmSwap:", "VmPTE:", "HugetlbPages:"];
    ProcessMemory {
        own_bytes: own.iter().map(|name| parse_kib(status, name)).sum(),
        shared_bytes: parse_kib(status, "RssShmem:"),
    }
}

/// Parses `/proc/<pid>/smaps_rollup`, which divides shared pages among their processes.
fn parse_smaps_rollup(rollup: &str, page_tables: u64) -> Option<ProcessMemory> {
    rollup.contains("Pss_Anon:").then(|| {
        let own = ["Pss_Anon:", "SwapPss:", "Shared_Hugetlb:", "Private_Hugetlb:"];
        ProcessMemory {
            own_bytes: own.iter().map(|name| parse_kib(rollup, name)).sum::<u64>() + page_tables,
            shared_bytes: parse_kib(rollup, "Pss_Shmem:"),
        }
    })
}

/// Parses the number of sockets in a network namespace, including those in flight between
/// processes.
fn parse_socket_count(sockstat: &str) -> u64 {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("sockets: used "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn parse_kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests;
