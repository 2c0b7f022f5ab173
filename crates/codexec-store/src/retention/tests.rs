use super::*;

#[test]
fn a_clock_that_jumps_is_implausible() {
    let now = SystemTime::UNIX_EPOCH + DAY * 20_000;
    let before = Some((Instant::now(), now));
    assert_eq!(find_clock_problem(before, now + DAY / 2, None), None);
    assert_eq!(find_clock_problem(before, now - DAY / 2, None), None);
    assert!(
        find_clock_problem(before, now + DAY * 49 / 24, None)
            .unwrap()
            .contains("jumped by 48 hours")
    );
    assert!(find_clock_problem(before, now - DAY * 2, None).unwrap().contains("jumped"));
    assert!(find_clock_problem(before, now + DAY * 3_650, Some(now)).is_some());
    assert_eq!(find_clock_problem(None, now, None), None, "nothing is stored");
    assert_eq!(find_clock_problem(None, now, Some(now - DAY * 300)), None);
    assert_eq!(find_clock_problem(None, now, Some(now + DAY * 300)), None);
    assert!(find_clock_problem(None, now + DAY * 3_650, Some(now)).is_some());
}
