use super::*;

const OPEN: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

fn settled(breaker: &mut Breaker, verdict: Verdict, now: Instant) {
    let pass = breaker.admit(now).expect("admitted");
    breaker.settle(&pass, verdict, now);
}

fn opened(now: Instant) -> Breaker {
    let mut breaker = Breaker::new(OPEN);
    for _ in 0..FAILURES {
        settled(&mut breaker, Verdict::Failed, now);
    }
    breaker
}

#[test]
fn the_fifth_failure_in_a_row_opens_it() {
    let now = Instant::now();
    let mut breaker = Breaker::new(OPEN);
    for before in 0..FAILURES {
        assert_eq!(breaker.phase(), Phase::Closed { failures: before });
        settled(&mut breaker, Verdict::Failed, now);
    }
    assert_eq!(breaker.phase(), Phase::Open { until: now + OPEN });
    assert_eq!(breaker.admit(now + SECOND), Err(Refusal::Open { left: OPEN - SECOND }));
}

#[test]
fn an_answer_starts_the_count_anew_and_nothing_said_leaves_it() {
    let now = Instant::now();
    for (between, is_open) in [
        (Verdict::Answered, false),
        (Verdict::Busy(Duration::ZERO), false),
        (Verdict::Unknown, true),
        (Verdict::Failed, true),
    ] {
        let mut breaker = Breaker::new(OPEN);
        for _ in 1..FAILURES {
            settled(&mut breaker, Verdict::Failed, now);
        }
        settled(&mut breaker, between, now);
        let now = now + SECOND;
        if breaker.admit(now).is_ok() {
            settled(&mut breaker, Verdict::Failed, now);
        }
        assert_eq!(matches!(breaker.phase(), Phase::Open { .. }), is_open, "{between:?}");
    }
}

#[test]
fn exactly_one_probe_goes_through() {
    let now = Instant::now();
    let mut breaker = opened(now);
    let later = now + OPEN;
    let probe = breaker.admit(later).expect("the probe");
    assert_eq!(breaker.phase(), Phase::Probing);
    for _ in 0..3 {
        assert_eq!(breaker.admit(later + 10 * OPEN), Err(Refusal::Probing));
    }
    breaker.settle(&probe, Verdict::Answered, later);
    assert_eq!(breaker.phase(), Phase::Closed { failures: 0 });
    assert!(breaker.admit(later).is_ok() && breaker.admit(later).is_ok());
}

#[test]
fn a_probe_that_fails_opens_it_for_as_long_again() {
    let now = Instant::now();
    let mut breaker = opened(now);
    let later = now + 2 * OPEN;
    let probe = breaker.admit(later).expect("the probe");
    breaker.settle(&probe, Verdict::Failed, later + SECOND);
    assert_eq!(breaker.phase(), Phase::Open { until: later + SECOND + OPEN });
    assert!(breaker.admit(later + OPEN).is_err());
    assert!(breaker.admit(later + SECOND + OPEN).is_ok());
}

#[test]
fn a_probe_that_was_given_up_leaves_its_place_to_the_next() {
    let now = Instant::now();
    let mut breaker = opened(now);
    let later = now + OPEN;
    let probe = breaker.admit(later).expect("the probe");
    breaker.settle(&probe, Verdict::Unknown, later);
    let next = breaker.admit(later).expect("the next probe");
    assert_eq!(breaker.admit(later), Err(Refusal::Probing));
    // The first probe's result no longer counts.
    breaker.settle(&probe, Verdict::Answered, later);
    assert_eq!(breaker.phase(), Phase::Probing);
    breaker.settle(&next, Verdict::Answered, later);
    assert_eq!(breaker.phase(), Phase::Closed { failures: 0 });
}

#[test]
fn calls_from_before_it_opened_change_nothing() {
    let now = Instant::now();
    for verdict in [Verdict::Answered, Verdict::Failed, Verdict::Unknown] {
        let mut breaker = Breaker::new(OPEN);
        let late = breaker.admit(now).expect("admitted");
        for _ in 0..FAILURES {
            settled(&mut breaker, Verdict::Failed, now);
        }
        let open = Phase::Open { until: now + OPEN };
        breaker.settle(&late, verdict, now + SECOND);
        assert_eq!(breaker.phase(), open, "{verdict:?}");
        let probe = breaker.admit(now + OPEN).expect("the probe");
        breaker.settle(&late, verdict, now + OPEN);
        assert_eq!(breaker.phase(), Phase::Probing, "{verdict:?}");
        breaker.settle(&probe, Verdict::Answered, now + OPEN);
        breaker.settle(&late, verdict, now + OPEN);
        assert_eq!(breaker.phase(), Phase::Closed { failures: 0 }, "{verdict:?}");
    }
}

#[test]
fn a_server_that_asks_for_patience_gets_it_within_reason() {
    let now = Instant::now();
    let mut breaker = Breaker::new(OPEN);
    let (one, two) = (breaker.admit(now).expect("one"), breaker.admit(now).expect("two"));
    breaker.settle(&one, Verdict::Busy(10 * SECOND), now);
    // A later, shorter request does not shorten the pause.
    breaker.settle(&two, Verdict::Busy(SECOND), now);
    assert_eq!(breaker.admit(now), Err(Refusal::Held { left: 10 * SECOND }));
    assert_eq!(breaker.held_until(now), Some(now + 10 * SECOND));
    assert!(breaker.admit(now + 10 * SECOND).is_ok());
    assert_eq!(breaker.held_until(now + 10 * SECOND), None);
    settled(&mut breaker, Verdict::Busy(Duration::MAX), now + 10 * SECOND);
    let left = LONGEST_HOLD;
    assert_eq!(breaker.admit(now + 10 * SECOND), Err(Refusal::Held { left }));
}
