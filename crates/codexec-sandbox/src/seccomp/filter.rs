//! A list of calls as a program for the kernel. The kernel tries the program on every call there
//! is when it is loaded, and each guest loads it anew, so it looks calls up by halving the list:
//! with a long row of comparisons, loading took longer than anything else a worker does.

use std::collections::BTreeMap;

use seccompiler::sock_filter;

use super::{Form, Test, Verdict};

const LOAD: u16 = 0x20;
const JUMP: u16 = 0x05;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const JUMP_IF_AT_LEAST: u16 = 0x35;
pub(super) const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

pub(super) const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const ERROR: u32 = 0x0005_0000;

/// Where the number of the call, the machine and the arguments stand in what a filter sees.
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

pub(super) fn compile(list: &BTreeMap<u32, Verdict>) -> Option<Vec<sock_filter>> {
    let mut program = vec![
        load(MACHINE),
        sock_filter { code: JUMP_IF_EQUAL, jt: 1, jf: 0, k: machine()? },
        end(KILL_PROCESS),
        load(NUMBER),
    ];
    program.extend(tree(&pieces(list)));
    Some(program)
}

/// The numbers of all calls cut into pieces, each with its first number: `None` is refused.
fn pieces(list: &BTreeMap<u32, Verdict>) -> Vec<(u32, Option<Verdict>)> {
    let mut pieces = vec![(0, None)];
    for (&number, &verdict) in list {
        for piece in [(number, Some(verdict)), (number + 1, None)] {
            if pieces.last().is_some_and(|(first, _)| *first == piece.0) {
                pieces.pop();
            }
            if pieces.last().is_none_or(|(_, before)| *before != piece.1) {
                pieces.push(piece);
            }
        }
    }
    pieces
}

/// Which half, again and again.
fn tree(pieces: &[(u32, Option<Verdict>)]) -> Vec<sock_filter> {
    let (lower, upper) = match pieces {
        [] => return refuse(libc::EPERM),
        [(_, verdict)] => return leaf(*verdict),
        more => more.split_at(more.len() / 2),
    };
    let first = upper.first().map_or(0, |(first, _)| *first);
    let (lower, upper) = (tree(lower), tree(upper));
    let over = u32::try_from(lower.len()).unwrap_or(u32::MAX);
    let mut program = vec![
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: first },
        sock_filter { code: JUMP, jt: 0, jf: 0, k: over },
    ];
    program.extend(lower);
    program.extend(upper);
    program
}

fn leaf(verdict: Option<Verdict>) -> Vec<sock_filter> {
    match verdict {
        None => refuse(libc::EPERM),
        Some(Verdict::Allowed) => vec![end(ALLOW)],
        Some(Verdict::Unknown) => refuse(libc::ENOSYS),
        Some(Verdict::If { argument, test }) => {
            let mut program = vec![load(ARGUMENTS + 8 * u32::from(argument))];
            let jump = |code, k, jt, jf| sock_filter { code, jt, jf, k };
            match test {
                Test::Is(value) => program.push(jump(JUMP_IF_EQUAL, value, 1, 0)),
                Test::HasNoBit(bits) => program.push(jump(JUMP_IF_ANY_BIT, bits, 0, 1)),
                Test::IsNone(values) => {
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
        Some(Verdict::Fits(forms)) => {
            let mut program: Vec<sock_filter> = forms.iter().flat_map(|form| fits(form)).collect();
            program.extend(refuse(libc::EPERM));
            program
        }
    }
}

/// Allows what fits; anything else goes on behind it.
fn fits(form: Form) -> Vec<sock_filter> {
    let mut program = vec![end(ALLOW)];
    for (argument, values) in form.iter().rev() {
        let mut test = vec![load(ARGUMENTS + 8 * u32::from(*argument))];
        for (at, value) in values.iter().enumerate() {
            // Over the values that are left, and over the way out.
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
