use std::collections::BTreeMap;

use super::{ArgumentTest, SyscallVerdict, number, programs};

/// The only allowed operation of `seccomp`: a fork loads a stricter filter.
const SET_MODE_FILTER: u32 = 1;

/// THREAT[ZYG-1]: the calls of all programs, and those that a fork needs to enter a worker and to
/// drop its capabilities. No mounts: the program may enter namespaces, but not change them.
pub(super) fn list() -> BTreeMap<u32, SyscallVerdict> {
    let mut list = programs::list();
    for call in [libc::SYS_setns, libc::SYS_capset] {
        list.insert(number(call), SyscallVerdict::Allowed);
    }
    let is_filter = SyscallVerdict::If { argument: 0, test: ArgumentTest::Equals(SET_MODE_FILTER) };
    list.insert(number(libc::SYS_seccomp), is_filter);
    list
}
