use super::*;

#[test]
fn res_8_the_next_look_comes_before_what_is_left_can_be_full() {
    for mib in [4_u64, 16, 64, 128, 512] {
        let room = mib << 20;
        let pause = pause(room, LONGEST);
        let filled = *FILL_RATE * pause.as_micros() as u64 / 1_000_000;
        assert!(pause == SHORTEST || filled <= room, "{mib} MiB: {pause:?}");
    }
    assert_eq!(pause(0, LONGEST), SHORTEST);
    assert_eq!(pause(u64::MAX, LONGEST), LONGEST);
}
