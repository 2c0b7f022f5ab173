use super::*;

#[test]
fn res_8_the_next_check_comes_before_memory_can_be_full() {
    for mib in [4_u64, 16, 64, 128, 512] {
        let left = mib << 20;
        let pause = shortest_fill_time(left, LONGEST);
        let filled = *FILL_RATE * pause.as_micros() as u64 / 1_000_000;
        assert!(pause == SHORTEST || filled <= left, "{mib} MiB: {pause:?}");
    }
    assert_eq!(shortest_fill_time(0, LONGEST), SHORTEST);
    assert_eq!(shortest_fill_time(u64::MAX, LONGEST), LONGEST);
}
