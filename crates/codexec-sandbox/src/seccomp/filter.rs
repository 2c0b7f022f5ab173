//! Compiles a list of calls to a BPF program. The kernel runs the program for every system call
//! number when it is loaded, and each guest loads it again. The program therefore uses a binary
//! search: with a linear one, loading took longer than all other steps of a worker's start.

use std::collections::BTreeMap;

use seccompiler::sock_filter;

use super::{ArgumentPattern, ArgumentTest, SyscallVerdict};

const LOAD: u16 = 0x20;
const JUMP: u16 = 0x05;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const JUMP_IF_AT_LEAST: u16 = 0x35;
pub(super) const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

pub(super) const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const ERROR: u32 = 0x0005_0000;

/// The offsets of the fields of `struct seccomp_data`.
pub(super) const NUMBER: u32 = 0;
pub(super) const MACHINE: u32 = 4;
pub(super) const ARGUMENTS: u32 = 16;

pub(super) fn machine() -> Option<u32> {
    match std::env::consts::ARCH {
        "x86_64" => Some(0xc000_003e),
        "aarch64" => Some(0xc000_00b7),
        _ => None,
    }
}

pub(super) fn compile(list: &BTreeMap<u32, SyscallVerdict>) -> Option<Vec<sock_filter>> {
    let mut program = vec![
        load(MACHINE),
        sock_filter { code: JUMP_IF_EQUAL, jt: 1, jf: 0, k: machine()? },
        end(KILL_PROCESS),
        load(NUMBER),
    ];
    program.extend(compile_search(&to_ranges(list)));
    Some(program)
}

/// Splits all call numbers into ranges with the same verdict, each with its first number. `None`
/// means refused.
fn to_ranges(list: &BTreeMap<u32, SyscallVerdict>) -> Vec<(u32, Option<SyscallVerdict>)> {
    let mut ranges = vec![(0, None)];
    for (&number, &verdict) in list {
        for range in [(number, Some(verdict)), (number + 1, None)] {
            if ranges.last().is_some_and(|(first, _)| *first == range.0) {
                ranges.pop();
            }
            if ranges.last().is_none_or(|(_, before)| *before != range.1) {
                ranges.push(range);
            }
        }
    }
    ranges
}

/// Compiles a binary search.
fn compile_search(ranges: &[(u32, Option<SyscallVerdict>)]) -> Vec<sock_filter> {
    let (lower, upper) = match ranges {
        [] => return refuse(libc::EPERM),
        [(_, verdict)] => return compile_verdict(*verdict),
        more => more.split_at(more.len() / 2),
    };
    let first = upper.first().map_or(0, |(first, _)| *first);
    let (lower, upper) = (compile_search(lower), compile_search(upper));
    let over = u32::try_from(lower.len()).unwrap_or(u32::MAX);
    let mut program = vec![
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: first },
        sock_filter { code: JUMP, jt: 0, jf: 0, k: over },
    ];
    program.extend(lower);
    program.extend(upper);
    program
}

fn compile_verdict(verdict: Option<SyscallVerdict>) -> Vec<sock_filter> {
    match verdict {
        None => refuse(libc::EPERM),
        Some(SyscallVerdict::Allowed) => vec![end(ALLOW)],
        Some(SyscallVerdict::Unknown) => refuse(libc::ENOSYS),
        Some(SyscallVerdict::If { argument, test }) => {
            let mut program = vec![load(ARGUMENTS + 8 * u32::from(argument))];
            let jump = |code, k, jt, jf| sock_filter { code, jt, jf, k };
            match test {
                ArgumentTest::Equals(value) => program.push(jump(JUMP_IF_EQUAL, value, 1, 0)),
                ArgumentTest::HasNoBit(bits) => program.push(jump(JUMP_IF_ANY_BIT, bits, 0, 1)),
                ArgumentTest::NoneOf(values) => {
                    for value in values {
                        program.push(jump(JUMP_IF_EQUAL, *value, 0, 1));
                        program.extend(refuse(libc::EPERM));
                    }
                    program.push(end(ALLOW));
                    return program;
                }
            }
            program.extend(refuse(libc::EPERM));
            program.push(end(ALLOW));
            program
        }
        Some(SyscallVerdict::IfMatches(patterns)) => {
            let compiled = patterns.iter().flat_map(|pattern| compile_pattern(pattern));
            let mut program: Vec<sock_filter> = compiled.collect();
            program.extend(refuse(libc::EPERM));
            program
        }
    }
}

/// Compiles a pattern: allows a call that matches, and otherwise continues after the pattern.
fn compile_pattern(pattern: ArgumentPattern) -> Vec<sock_filter> {
    let mut program = vec![end(ALLOW)];
    for (argument, values) in pattern.iter().rev() {
        let mut test = vec![load(ARGUMENTS + 8 * u32::from(*argument))];
        for (at, value) in values.iter().enumerate() {
            // Jumps over the remaining values and over the jump to the end.
            let jt = u8::try_from(values.len() - at).unwrap_or(u8::MAX);
            test.push(sock_filter { code: JUMP_IF_EQUAL, jt, jf: 0, k: *value });
        }
        let out = u32::try_from(program.len()).unwrap_or(u32::MAX);
        test.push(sock_filter { code: JUMP, jt: 0, jf: 0, k: out });
        test.append(&mut program);
        program = test;
    }
    program
}

pub(super) fn load(at: u32) -> sock_filter {
    sock_filter { code: LOAD, jt: 0, jf: 0, k: at }
}

pub(super) fn end(action: u32) -> sock_filter {
    sock_filter { code: RETURN, jt: 0, jf: 0, k: action }
}

pub(super) fn refuse(errno: i32) -> Vec<sock_filter> {
    vec![end(ERROR | errno.unsigned_abs())]
}

#[cfg(test)]
mod tests;
