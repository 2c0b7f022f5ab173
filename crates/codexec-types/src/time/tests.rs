use super::*;

#[track_caller]
fn check(text: &str, written: &str) {
    assert_eq!(parse_time(text).map(format_rfc3339).as_deref(), Some(written), "{text}");
}

#[test]
fn times_are_parsed_and_formatted() {
    check("2026-02-09T14:30:01.123Z", "2026-02-09T14:30:01.123Z");
    check("2026-02-09", "2026-02-09T00:00:00.000Z");
    check("2024-02-29T23:59:59Z", "2024-02-29T23:59:59.000Z");
    check("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z");
    check("2026-02-09T14:30+02:00", "2026-02-09T12:30:00.000Z");
    check("2026-01-01T00:30:00-01:00", "2026-01-01T01:30:00.000Z");
    check("2000-03-01 00:00:00", "2000-03-01T00:00:00.000Z");
    assert_eq!(format_utc_day(from_unix_ms(951_782_400_000)), "2000-02-29");
    assert_eq!(unix_ms(from_unix_ms(-1)), -1);
}

#[test]
fn invalid_times_are_rejected() {
    for text in [
        "",
        "9999-99-99",
        "2025-02-29",
        "2026-00-01",
        "2026-1-1",
        "26-01-01",
        "2026-01-01T",
        "2026-01-01T25:00:00Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+2",
        "yesterday",
        "2026-01-01-01",
        "2026-01-01T00:00:00Zx",
        "\u{0}",
        "+026-01-01",
    ] {
        assert_eq!(parse_time(text), None, "{text:?}");
    }
}
