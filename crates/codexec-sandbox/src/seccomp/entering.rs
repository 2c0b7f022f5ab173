use std::collections::BTreeMap;

use super::{Test, Verdict, number, programs};

/// The one thing that it does to filters: it gives its forks a stricter one.
const SET_MODE_FILTER: u32 = 1;

/// THREAT[ZYG-1]: what all programs may, and what a fork needs to enter a worker and to give up
/// its rights. No mounts: the right to enter namespaces is no right to change them.
pub(super) fn list() -> BTreeMap<u32, Verdict> {
    let mut list = programs::list();
    for call in [libc::SYS_setns, libc::SYS_capset] {
        list.insert(number(call), Verdict::Allowed);
    }
    let is_filter = Verdict::If { argument: 0, test: Test::Is(SET_MODE_FILTER) };
    list.insert(number(libc::SYS_seccomp), is_filter);
    list
}
