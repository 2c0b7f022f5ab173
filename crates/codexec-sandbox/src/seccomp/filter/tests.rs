use super::*;
use crate::seccomp::{fetching, interpreter, programs};

/// Runs a filter on a call, as the kernel does, and returns its action.
fn run_filter(program: &[sock_filter], machine: u32, number: u32, arguments: &[(u8, u32)]) -> u32 {
    let (mut at, mut loaded) = (0, 0);
    for _ in 0..1_000 {
        let step = &program[at];
        at += 1;
        let jump = |is: bool| usize::from(if is { step.jt } else { step.jf });
        match step.code {
            LOAD => {
                loaded = match step.k {
                    NUMBER => number,
                    MACHINE => machine,
                    k => {
                        let is_this = |(at, _): &&(u8, u32)| k == ARGUMENTS + 8 * u32::from(*at);
                        arguments.iter().find(is_this).map_or(0, |(_, value)| *value)
                    }
                }
            }
            JUMP => at += step.k as usize,
            JUMP_IF_EQUAL => at += jump(loaded == step.k),
            JUMP_IF_AT_LEAST => at += jump(loaded >= step.k),
            JUMP_IF_ANY_BIT => at += jump(loaded & step.k != 0),
            RETURN => return step.k,
            code => panic!("unknown instruction: {code}"),
        }
    }
    panic!("no end");
}

#[test]
fn every_call_gets_the_verdict_of_its_list() {
    let here = machine().expect("a supported architecture");
    for list in [interpreter::list(), programs::list(), fetching::list()] {
        let program = compile(&list).expect("a program");
        let numbers = (0..1_000).chain([0x4000_0000, 0x4000_0001, u32::MAX]);
        for number in numbers {
            let (refused, unknown) = (ERROR | 1, ERROR | 38);
            let judge = |argument| run_filter(&program, here, number, &[argument]);
            match list.get(&number) {
                None => assert_eq!(judge((0, 0)), refused, "{number}"),
                Some(SyscallVerdict::Allowed) => assert_eq!(judge((0, 0)), ALLOW, "{number}"),
                Some(SyscallVerdict::Unknown) => assert_eq!(judge((0, 0)), unknown, "{number}"),
                Some(SyscallVerdict::If { argument, test }) => {
                    let (good, bad): (Vec<u32>, Vec<u32>) = match test {
                        ArgumentTest::Equals(value) => (vec![*value], vec![value + 1, 0, u32::MAX]),
                        ArgumentTest::NoneOf(values) => (vec![0, 1], values.to_vec()),
                        ArgumentTest::HasNoBit(bits) => {
                            let each = (0..32).map(|n| 1 << n).filter(|bit| bits & bit != 0);
                            (vec![0, !bits], each.chain([u32::MAX]).collect())
                        }
                    };
                    for value in good {
                        assert_eq!(judge((*argument, value)), ALLOW, "{number} {value}");
                    }
                    for value in bad {
                        assert_eq!(judge((*argument, value)), refused, "{number} {value}");
                    }
                }
                // Tested below.
                Some(SyscallVerdict::IfMatches(_)) => {
                    assert_eq!(i64::from(number), libc::SYS_socket);
                }
            }
            assert_eq!(run_filter(&program, 3, number, &[]), KILL_PROCESS);
        }
    }
}

#[test]
fn programs_that_fetch_can_open_only_tcp_and_unix_sockets() {
    let here = machine().expect("a supported architecture");
    let program = compile(&fetching::list()).expect("a program");
    let socket = u32::try_from(libc::SYS_socket).expect("a number");
    let judge = |family: i32, kind: i32, protocol: i32| {
        let arguments = [(0, family), (1, kind), (2, protocol)];
        let arguments = arguments.map(|(at, value)| (at, value.unsigned_abs()));
        run_filter(&program, here, socket, &arguments)
    };
    use libc::{AF_INET, AF_INET6, AF_UNIX, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM};
    for family in [AF_INET, AF_INET6] {
        for flags in [0, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_CLOEXEC | SOCK_NONBLOCK] {
            for protocol in [0, libc::IPPROTO_TCP] {
                assert_eq!(judge(family, SOCK_STREAM | flags, protocol), ALLOW);
            }
            for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET] {
                assert_eq!(judge(family, kind | flags, 0), ERROR | 1, "{kind}");
            }
        }
        for protocol in [libc::IPPROTO_MPTCP, libc::IPPROTO_SCTP, libc::IPPROTO_DCCP, 1, 255] {
            assert_eq!(judge(family, SOCK_STREAM, protocol), ERROR | 1, "{protocol}");
        }
    }
    assert_eq!(judge(AF_UNIX, libc::SOCK_DGRAM, 0), ALLOW);
    for family in [libc::AF_NETLINK, libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, 0] {
        assert_eq!(judge(family, SOCK_STREAM, 0), ERROR | 1, "{family}");
    }
}

#[test]
fn res_9_only_shared_anonymous_memory_is_refused() {
    let here = machine().expect("a supported architecture");
    let program = crate::seccomp::shared_memory::compile().expect("a program");
    let mmap = crate::seccomp::number(libc::SYS_mmap);
    let small = crate::seccomp::shared_memory::SMALL_BYTES;
    let of_bytes = |bytes: u32, number, flags: i32| {
        run_filter(&program, here, number, &[(1, bytes), (3, flags.unsigned_abs())])
    };
    let judge = |number, flags: i32| of_bytes(small + 1, number, flags);
    let (shared, private) = (libc::MAP_SHARED, libc::MAP_PRIVATE);
    for flags in [shared, libc::MAP_SHARED_VALIDATE] {
        assert_eq!(judge(mmap, flags | libc::MAP_ANONYMOUS), ERROR | 1);
        assert_eq!(judge(mmap, flags | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE), ERROR | 1);
        assert_eq!(judge(mmap, flags), ALLOW);
        assert_eq!(of_bytes(small, mmap, flags | libc::MAP_ANONYMOUS), ALLOW);
    }
    assert_eq!(judge(mmap, private | libc::MAP_ANONYMOUS), ALLOW);
    assert_eq!(judge(mmap, private), ALLOW);
    assert_eq!(judge(mmap + 1, shared | libc::MAP_ANONYMOUS), ALLOW);
}
