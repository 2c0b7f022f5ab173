use super::*;

#[test]
fn one_slip_is_forgiven_and_two_in_long_words() {
    for (typed, meant) in
        [("mesage", "message"), ("gmial", "gmail"), ("forcast", "forecast"), ("kubctl", "kubectl")]
    {
        assert!(likeness(typed, meant) > 0.5, "{typed} {meant}");
    }
    assert!(likeness("screnshto", "screenshot") > 0.0);
    assert!(likeness("screnshto", "screenshot") < likeness("screnshot", "screenshot"));
}

#[test]
fn other_words_are_not_slips() {
    for (a, b) in [("get", "set"), ("read", "write"), ("post", "most"), ("create", "delete")] {
        let likeness = likeness(a, b);
        assert!(likeness < 0.8, "{a} {b} {likeness}");
    }
    assert!(likeness("get", "set").abs() < f32::EPSILON);
    assert!(likeness("create", "delete").abs() < f32::EPSILON);
}
