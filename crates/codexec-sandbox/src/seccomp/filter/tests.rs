use super::*;
use crate::seccomp::{interpreter, programs};

/// What the kernel would do with this call.
fn judged(program: &[sock_filter], machine: u32, number: u32, argument: (u8, u32)) -> u32 {
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
                    k if k == ARGUMENTS + 8 * u32::from(argument.0) => argument.1,
                    _ => 0,
                }
            }
            JUMP => at += step.k as usize,
            JUMP_IF_EQUAL => at += jump(loaded == step.k),
            JUMP_IF_AT_LEAST => at += jump(loaded >= step.k),
            JUMP_IF_ANY_BIT => at += jump(loaded & step.k != 0),
            RETURN => return step.k,
            code => panic!("an instruction of no kind: {code}"),
        }
    }
    panic!("no end");
}

#[test]
fn every_call_is_judged_as_its_list_says() {
    let here = machine().expect("a machine that we know");
    for list in [interpreter::list(), programs::list()] {
        let program = compile(&list).expect("a program");
        let numbers = (0..1_000).chain([0x4000_0000, 0x4000_0001, u32::MAX]);
        for number in numbers {
            let (refused, unknown) = (ERROR | 1, ERROR | 38);
            let judge = |argument| judged(&program, here, number, argument);
            match list.get(&number) {
                None => assert_eq!(judge((0, 0)), refused, "{number}"),
                Some(Verdict::Allowed) => assert_eq!(judge((0, 0)), ALLOW, "{number}"),
                Some(Verdict::Unknown) => assert_eq!(judge((0, 0)), unknown, "{number}"),
                Some(Verdict::If { argument, test }) => {
                    let (good, bad): (Vec<u32>, Vec<u32>) = match test {
                        Test::Is(value) => (vec![*value], vec![value + 1, 0, u32::MAX]),
                        Test::IsNone(values) => (vec![0, 1], values.to_vec()),
                        Test::HasNoBit(bits) => {
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
            }
            assert_eq!(judged(&program, 3, number, (0, 0)), KILL_PROCESS);
        }
    }
}
