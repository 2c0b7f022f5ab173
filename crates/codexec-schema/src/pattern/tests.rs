use super::*;

#[track_caller]
fn check(pattern: &str, matching: &[&str], others: &[&str]) {
    let compiled = compile(pattern).expect("a supported pattern");
    for text in matching {
        assert!(compiled.is_match(text), "{pattern} matches {text}");
    }
    for text in others {
        assert!(!compiled.is_match(text), "{pattern} does not match {text}");
    }
}

#[test]
fn patterns_match_as_in_ecmascript() {
    check(r"^\d+$", &["12"], &["", "1a", "\u{661}"]);
    check(r"^[\w.-]+@[\w-]+$", &["a.b-c@d"], &["ä@d", "a b@d"]);
    check(r"^a\/b$", &["a/b"], &["ab"]);
    check(r"^[[]$", &["["], &["]"]);
    check(r"^\u00e4$", &["ä"], &["a"]);
}

#[test]
fn ord_2_large_and_unsupported_patterns_are_not_compiled() {
    for bad in ["(a{1000}){1000}", "(", "a(?=b)", r"(\w)\1", &"a".repeat(PATTERN_BYTES + 1)] {
        assert!(compile(bad).is_none(), "{bad:.40}");
    }
    assert_eq!(count_steps(&"a".repeat(TEXT_BYTES + 1)), None);
}

#[test]
fn ord_2_the_cache_of_patterns_is_bounded() {
    let patterns = Patterns::default();
    for number in 0..10 * CACHED {
        assert!(patterns.get(&format!("^{number}$")).is_some());
    }
    assert!(patterns.0.lock().expect("not poisoned").len() <= CACHED);
}
