use super::*;

fn evidence() -> Evidence {
    Evidence {
        language: Language::Python,
        is_compiled: true,
        exit: None,
        status: Some(0),
        ran_out_of_memory: false,
        peak_bytes: 0,
        memory_bytes: 1 << 20,
    }
}

fn returned() -> Option<Claim> {
    Some(Claim::Returned(Json::parse("7".to_owned()).unwrap()))
}

fn threw(code: ThrownCode) -> Option<Claim> {
    Some(Claim::Threw(Thrown { code, message: "m".to_owned(), at: None, stack: None }))
}

/// Checks the outcome's code for a program with this wait status and claim.
#[track_caller]
fn check(status: i32, claim: Option<Claim>, code: Option<&str>) {
    let outcome = Evidence { status: Some(status), ..evidence() }.judge_program(claim);
    assert_eq!(outcome.code(), code, "{outcome:?}");
}

#[test]
fn a_program_ends_as_the_host_saw_it() {
    let exited = |code: i32| code << 8;
    check(exited(0), returned(), None);
    check(exited(0), None, None);
    // The claim counts only if it agrees with the status.
    check(exited(0), threw(ThrownCode::RuntimeError), None);
    check(exited(3), returned(), Some("NONZERO_EXIT"));
    check(exited(1), threw(ThrownCode::RuntimeError), Some("RUNTIME_ERROR"));
    check(exited(1), threw(ThrownCode::MemoryLimit), Some("RUNTIME_ERROR"));
    check(9, returned(), Some("CRASHED"));
    check(SIGXCPU, None, Some("CPU_LIMIT"));
    check(SIGXFSZ, None, Some("DISK_LIMIT"));
}

#[test]
fn memory_that_ran_out_is_why_a_program_failed_and_not_why_it_succeeded() {
    let out = |status| Evidence { status: Some(status), ran_out_of_memory: true, ..evidence() };
    assert_eq!(out(9).judge_program(None), Outcome::Stopped(Limit::Memory));
    assert_eq!(out(137 << 8).judge_program(returned()), Outcome::Stopped(Limit::Memory));
    assert_eq!(out(0).judge_program(returned()).code(), None);
}

#[test]
fn zyg_4_a_program_is_out_of_memory_by_the_hosts_measure_only() {
    let check = |seen: Evidence, expected: &str| {
        let outcome = seen.judge_program(threw(ThrownCode::MemoryLimit));
        assert_eq!(outcome.code(), Some(expected), "{outcome:?}");
    };
    let failed = || Evidence { status: Some(1 << 8), ..evidence() };
    check(failed(), "RUNTIME_ERROR");
    check(Evidence { peak_bytes: 1 << 19, ..failed() }, "RUNTIME_ERROR");
    check(Evidence { peak_bytes: 1 << 20, ..failed() }, "MEMORY_LIMIT");
    check(Evidence { ran_out_of_memory: true, ..failed() }, "MEMORY_LIMIT");
}

#[test]
fn an_unobserved_end_is_a_crash() {
    let unseen = Evidence { status: None, ..evidence() };
    assert_eq!(unseen.judge_program(returned()), Outcome::Crashed(Crash::Exited));
}
