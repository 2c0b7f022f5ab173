use std::collections::BTreeMap;

use super::{ArgumentPattern, SyscallVerdict, number, programs};

const UNIX: u32 = libc::AF_UNIX.unsigned_abs();
const INTERNET: [u32; 2] = [libc::AF_INET.unsigned_abs(), libc::AF_INET6.unsigned_abs()];
const STREAM: u32 = libc::SOCK_STREAM.unsigned_abs();
const NOT_INHERITED: u32 = libc::SOCK_CLOEXEC.unsigned_abs();
const NOT_BLOCKING: u32 = libc::SOCK_NONBLOCK.unsigned_abs();
const TCP: u32 = libc::IPPROTO_TCP.unsigned_abs();

const STREAMS: [u32; 4] =
    [STREAM, STREAM | NOT_INHERITED, STREAM | NOT_BLOCKING, STREAM | NOT_INHERITED | NOT_BLOCKING];

/// The allowed combinations of family, type and protocol.
const SOCKETS: [ArgumentPattern; 2] =
    [&[(0, &[UNIX])], &[(0, &INTERNET), (1, &STREAMS), (2, &[0, TCP])]];

/// THREAT[PKG-1]: the calls of all programs, and TCP sockets. No other protocol, whichever this
/// kernel supports.
pub(super) fn list() -> BTreeMap<u32, SyscallVerdict> {
    let mut list = programs::list();
    list.insert(number(libc::SYS_socket), SyscallVerdict::IfMatches(&SOCKETS));
    list
}
