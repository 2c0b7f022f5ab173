use std::collections::BTreeMap;

use super::{Form, Verdict, number, programs};

const UNIX: u32 = libc::AF_UNIX.unsigned_abs();
const INTERNET: [u32; 2] = [libc::AF_INET.unsigned_abs(), libc::AF_INET6.unsigned_abs()];
const STREAM: u32 = libc::SOCK_STREAM.unsigned_abs();
const NOT_INHERITED: u32 = libc::SOCK_CLOEXEC.unsigned_abs();
const NOT_BLOCKING: u32 = libc::SOCK_NONBLOCK.unsigned_abs();
const TCP: u32 = libc::IPPROTO_TCP.unsigned_abs();

const STREAMS: [u32; 4] =
    [STREAM, STREAM | NOT_INHERITED, STREAM | NOT_BLOCKING, STREAM | NOT_INHERITED | NOT_BLOCKING];

/// Family, type and protocol.
const SOCKETS: [Form; 2] = [&[(0, &[UNIX])], &[(0, &INTERNET), (1, &STREAMS), (2, &[0, TCP])]];

/// THREAT[PKG-1]: what all programs may, and TCP: no other protocol, whatever this kernel has.
pub(super) fn list() -> BTreeMap<u32, Verdict> {
    let mut list = programs::list();
    list.insert(number(libc::SYS_socket), Verdict::Fits(&SOCKETS));
    list
}
