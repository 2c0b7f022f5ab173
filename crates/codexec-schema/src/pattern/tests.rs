use super::*;

#[track_caller]
fn check(pattern: &str, fits: &[&str], others: &[&str]) {
    let compiled = compile(pattern).expect("usable");
    for text in fits {
        assert!(compiled.is_match(text), "{pattern} fits {text}");
    }
    for text in others {
        assert!(!compiled.is_match(text), "{pattern} does not fit {text}");
    }
}

#[test]
fn patterns_mean_what_ecmascript_says() {
    check(r"^\d+$", &["12"], &["", "1a", "\u{661}"]);
    check(r"^[\w.-]+@[\w-]+$", &["a.b-c@d"], &["ä@d", "a b@d"]);
    check(r"^a\/b$", &["a/b"], &["ab"]);
    check(r"^[[]$", &["["], &["]"]);
    check(r"^\u00e4$", &["ä"], &["a"]);
}

#[test]
fn ord_2_a_pattern_that_would_be_large_or_cannot_be_run_is_not_used() {
    for bad in ["(a{1000}){1000}", "(", "a(?=b)", r"(\w)\1", &"a".repeat(PATTERN_BYTES + 1)] {
        assert!(compile(bad).is_none(), "{bad:.40}");
    }
    assert_eq!(count_steps(&"a".repeat(TEXT_BYTES + 1)), None);
}

#[test]
fn ord_2_no_more_patterns_are_kept_than_the_bound() {
    let patterns = Patterns::default();
    for number in 0..10 * KEPT {
        assert!(patterns.get(&format!("^{number}$")).is_some());
    }
    assert!(patterns.0.lock().expect("whole").len() <= KEPT);
}
