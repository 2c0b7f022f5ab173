use super::*;

#[test]
fn one_typo_is_tolerated_and_two_in_long_words() {
    for (typed, meant) in
        [("mesage", "message"), ("gmial", "gmail"), ("forcast", "forecast"), ("kubctl", "kubectl")]
    {
        assert!(typo_similarity(typed, meant) > 0.5, "{typed} {meant}");
    }
    assert!(typo_similarity("screnshto", "screenshot") > 0.0);
    assert!(
        typo_similarity("screnshto", "screenshot") < typo_similarity("screnshot", "screenshot")
    );
}

#[test]
fn other_words_are_not_typos() {
    for (a, b) in [("get", "set"), ("read", "write"), ("post", "most"), ("create", "delete")] {
        let similarity = typo_similarity(a, b);
        assert!(similarity < 0.8, "{a} {b} {similarity}");
    }
    assert!(typo_similarity("get", "set").abs() < f32::EPSILON);
    assert!(typo_similarity("create", "delete").abs() < f32::EPSILON);
}
