//! Counting memory process by process, for where there are no cgroups.
//!
//! THREAT[RES-9]: anonymous memory, page tables, huge pages and what is swapped out all count. What
//! `/proc` cannot show is not to be had: see `refuse_shared_memory` of the sandbox.

use codexec_sandbox::shares_memory;

use crate::watch::{about, tree};

/// The kernel's buffers of one socket at most: twice the default of `net.core.wmem_max`.
const SOCKET_BYTES: u64 = 2 * 212_992;
/// So many sockets are free; few programs have more.
const FREE_SOCKETS: u64 = 64;

/// The memory of one process, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    own_bytes: u64,
    /// Pages of files in memory that are mapped.
    shared_bytes: u64,
}

/// Returns what a tree holds, with common memory counted once for every process that has it.
pub(super) fn held_bytes(roots: &[i32], disk_bytes: u64) -> u64 {
    let all = tree(roots).into_iter().map(|pid| held(&about(pid, "status")));
    total(all, roots, disk_bytes)
}

/// Returns what a tree holds if it is only the processes that the guest was started with.
pub(super) fn held_bytes_if_alone(roots: &[i32], disk_bytes: u64) -> Option<u64> {
    let all = tree(roots);
    let is_alone = all.len() <= roots.len().max(2);
    is_alone
        .then(|| total(all.into_iter().map(|pid| held(&about(pid, "status"))), roots, disk_bytes))
}

/// Returns what a tree holds, with common memory counted once.
pub(super) fn held_bytes_exactly(roots: &[i32], disk_bytes: u64) -> u64 {
    let mut seen: Vec<i32> = Vec::new();
    let mut all = Vec::new();
    for pid in tree(roots) {
        // Between `vfork` and `exec` a child is another thread of its parent's memory.
        if !seen.iter().any(|other| shares_memory(*other, pid)) {
            seen.push(pid);
            let shared = share(&about(pid, "smaps_rollup"), page_tables(pid));
            // A child that has ended since the tree was read holds nothing.
            all.push(shared.unwrap_or_else(|| held(&about(pid, "status"))));
        }
    }
    total(all.into_iter(), roots, disk_bytes)
}

fn total(all: impl Iterator<Item = Held>, roots: &[i32], disk_bytes: u64) -> u64 {
    let held = all.fold(Held::default(), |sum, one| Held {
        own_bytes: sum.own_bytes + one.own_bytes,
        shared_bytes: sum.shared_bytes + one.shared_bytes,
    });
    let sockets = roots.first().map_or(0, |root| sockets(&about(*root, "net/sockstat")));
    held.own_bytes
        + held.shared_bytes.saturating_sub(disk_bytes)
        + sockets.saturating_sub(FREE_SOCKETS) * SOCKET_BYTES
}

fn page_tables(pid: i32) -> u64 {
    kib(&about(pid, "status"), "VmPTE:")
}

/// As `/proc/<pid>/status` tells it.
fn held(status: &str) -> Held {
    let own = ["RssAnon:", "VmSwap:", "VmPTE:", "HugetlbPages:"];
    Held {
        own_bytes: own.iter().map(|name| kib(status, name)).sum(),
        shared_bytes: kib(status, "RssShmem:"),
    }
}

/// As `/proc/<pid>/smaps_rollup` tells it, where a page of two processes is half of each.
fn share(rollup: &str, page_tables: u64) -> Option<Held> {
    rollup.contains("Pss_Anon:").then(|| {
        let own = ["Pss_Anon:", "SwapPss:", "Shared_Hugetlb:", "Private_Hugetlb:"];
        Held {
            own_bytes: own.iter().map(|name| kib(rollup, name)).sum::<u64>() + page_tables,
            shared_bytes: kib(rollup, "Pss_Shmem:"),
        }
    })
}

/// The sockets of a network namespace, those on their way to another process included.
fn sockets(sockstat: &str) -> u64 {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("sockets: used "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests;
