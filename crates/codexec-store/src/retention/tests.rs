use super::*;

#[test]
fn a_clock_that_jumps_is_not_believed() {
    let now = SystemTime::UNIX_EPOCH + DAY * 20_000;
    let before = Some((Instant::now(), now));
    assert_eq!(doubt(before, now + DAY / 2, None), None);
    assert_eq!(doubt(before, now - DAY / 2, None), None);
    assert!(doubt(before, now + DAY * 49 / 24, None).unwrap().contains("jumped by 48 hours"));
    assert!(doubt(before, now - DAY * 2, None).unwrap().contains("jumped"));
    assert!(doubt(before, now + DAY * 3_650, Some(now)).is_some());
    assert_eq!(doubt(None, now, None), None, "nothing is kept");
    assert_eq!(doubt(None, now, Some(now - DAY * 300)), None);
    assert_eq!(doubt(None, now, Some(now + DAY * 300)), None);
    assert!(doubt(None, now + DAY * 3_650, Some(now)).is_some());
}
