use std::time::Duration;

use codexec_exec::Usage;
use codexec_types::{ExecutionId, Json, Position, ThrownCode};

use super::*;

#[track_caller]
fn check(output: &str, outcome: Outcome, expected: &str) {
    let execution = Execution {
        id: ExecutionId::from_bits(1),
        outcome,
        limits: Limits::DEFAULT,
        output: output.to_owned(),
        usage: Usage::default(),
        duration: Duration::ZERO,
    };
    let budget = Budget { chars: 100, head: 5, tail: 5 };
    assert_eq!(reply(&execution, budget).text, expected);
}

fn returned(json: &str) -> Outcome {
    Outcome::Returned(Json::parse(json.to_owned()).expect("json"))
}

#[test]
fn values_and_output() {
    check("", returned("42"), "42");
    check("", returned("\"a\\nb\""), "a\nb");
    check("", returned("null"), "null");
    check("hi\n", returned("null"), "hi");
    check("hi\n", returned("[1]"), "hi\n[result]\n[1]");
}

#[test]
fn failures_come_first() {
    let thrown = Thrown {
        code: ThrownCode::RuntimeError,
        message: "boom".to_owned(),
        at: Some(Position { line: 3, column: 7 }),
        stack: None,
    };
    let expected = "RUNTIME_ERROR: boom\n  at line 3, column 7\n[output]\nhi";
    check("hi\n", Outcome::Threw(thrown), expected);
    check("", Outcome::Cancelled, "CANCELLED: the execution was cancelled");
}

#[test]
fn long_texts_are_cut() {
    check(
        &"x".repeat(200),
        returned("null"),
        "[cut: 200 characters, the first 5 and the last 5 are shown; the whole is the resource \
         codexec://executions/exec_00000000000000000000000000000001]\n\
         xxxxx\n[... 190 characters left out ...]\nxxxxx",
    );
}
