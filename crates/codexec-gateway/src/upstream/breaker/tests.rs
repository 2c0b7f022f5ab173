use super::*;

const OPEN: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

fn record_call(breaker: &mut Breaker, verdict: CallVerdict, now: Instant) {
    let pass = breaker.admit(now).expect("admitted");
    breaker.record(&pass, verdict, now);
}

fn open_breaker(now: Instant) -> Breaker {
    let mut breaker = Breaker::new(OPEN);
    for _ in 0..FAILURES {
        record_call(&mut breaker, CallVerdict::Failed, now);
    }
    breaker
}

#[test]
fn the_fifth_failure_in_a_row_opens_it() {
    let now = Instant::now();
    let mut breaker = Breaker::new(OPEN);
    for before in 0..FAILURES {
        assert_eq!(breaker.phase(), BreakerPhase::Closed { failures: before });
        record_call(&mut breaker, CallVerdict::Failed, now);
    }
    assert_eq!(breaker.phase(), BreakerPhase::Open { until: now + OPEN });
    assert_eq!(breaker.admit(now + SECOND), Err(BreakerRefusal::Open { left: OPEN - SECOND }));
}

#[test]
fn an_answer_resets_the_count_and_an_unknown_end_keeps_it() {
    let now = Instant::now();
    for (between, is_open) in [
        (CallVerdict::Answered, false),
        (CallVerdict::Busy(Duration::ZERO), false),
        (CallVerdict::Unknown, true),
        (CallVerdict::Failed, true),
    ] {
        let mut breaker = Breaker::new(OPEN);
        for _ in 1..FAILURES {
            record_call(&mut breaker, CallVerdict::Failed, now);
        }
        record_call(&mut breaker, between, now);
        let now = now + SECOND;
        if breaker.admit(now).is_ok() {
            record_call(&mut breaker, CallVerdict::Failed, now);
        }
        assert_eq!(matches!(breaker.phase(), BreakerPhase::Open { .. }), is_open, "{between:?}");
    }
}

#[test]
fn exactly_one_probe_goes_through() {
    let now = Instant::now();
    let mut breaker = open_breaker(now);
    let later = now + OPEN;
    let probe = breaker.admit(later).expect("the probe");
    assert_eq!(breaker.phase(), BreakerPhase::Probing);
    for _ in 0..3 {
        assert_eq!(breaker.admit(later + 10 * OPEN), Err(BreakerRefusal::Probing));
    }
    breaker.record(&probe, CallVerdict::Answered, later);
    assert_eq!(breaker.phase(), BreakerPhase::Closed { failures: 0 });
    assert!(breaker.admit(later).is_ok() && breaker.admit(later).is_ok());
}

#[test]
fn a_failed_probe_opens_it_again() {
    let now = Instant::now();
    let mut breaker = open_breaker(now);
    let later = now + 2 * OPEN;
    let probe = breaker.admit(later).expect("the probe");
    breaker.record(&probe, CallVerdict::Failed, later + SECOND);
    assert_eq!(breaker.phase(), BreakerPhase::Open { until: later + SECOND + OPEN });
    assert!(breaker.admit(later + OPEN).is_err());
    assert!(breaker.admit(later + SECOND + OPEN).is_ok());
}

#[test]
fn an_abandoned_probe_lets_the_next_call_probe() {
    let now = Instant::now();
    let mut breaker = open_breaker(now);
    let later = now + OPEN;
    let probe = breaker.admit(later).expect("the probe");
    breaker.record(&probe, CallVerdict::Unknown, later);
    let next = breaker.admit(later).expect("the next probe");
    assert_eq!(breaker.admit(later), Err(BreakerRefusal::Probing));
    // The first probe's result no longer counts.
    breaker.record(&probe, CallVerdict::Answered, later);
    assert_eq!(breaker.phase(), BreakerPhase::Probing);
    breaker.record(&next, CallVerdict::Answered, later);
    assert_eq!(breaker.phase(), BreakerPhase::Closed { failures: 0 });
}

#[test]
fn calls_from_before_it_opened_change_nothing() {
    let now = Instant::now();
    for verdict in [CallVerdict::Answered, CallVerdict::Failed, CallVerdict::Unknown] {
        let mut breaker = Breaker::new(OPEN);
        let late = breaker.admit(now).expect("admitted");
        for _ in 0..FAILURES {
            record_call(&mut breaker, CallVerdict::Failed, now);
        }
        let open = BreakerPhase::Open { until: now + OPEN };
        breaker.record(&late, verdict, now + SECOND);
        assert_eq!(breaker.phase(), open, "{verdict:?}");
        let probe = breaker.admit(now + OPEN).expect("the probe");
        breaker.record(&late, verdict, now + OPEN);
        assert_eq!(breaker.phase(), BreakerPhase::Probing, "{verdict:?}");
        breaker.record(&probe, CallVerdict::Answered, now + OPEN);
        breaker.record(&late, verdict, now + OPEN);
        assert_eq!(breaker.phase(), BreakerPhase::Closed { failures: 0 }, "{verdict:?}");
    }
}

#[test]
fn a_requested_pause_is_kept_up_to_a_limit() {
    let now = Instant::now();
    let mut breaker = Breaker::new(OPEN);
    let (one, two) = (breaker.admit(now).expect("one"), breaker.admit(now).expect("two"));
    breaker.record(&one, CallVerdict::Busy(10 * SECOND), now);
    // A later, shorter request does not shorten the pause.
    breaker.record(&two, CallVerdict::Busy(SECOND), now);
    assert_eq!(breaker.admit(now), Err(BreakerRefusal::Backoff { left: 10 * SECOND }));
    assert_eq!(breaker.backoff_until(now), Some(now + 10 * SECOND));
    assert!(breaker.admit(now + 10 * SECOND).is_ok());
    assert_eq!(breaker.backoff_until(now + 10 * SECOND), None);
    record_call(&mut breaker, CallVerdict::Busy(Duration::MAX), now + 10 * SECOND);
    let left = LONGEST_BACKOFF;
    assert_eq!(breaker.admit(now + 10 * SECOND), Err(BreakerRefusal::Backoff { left }));
}
