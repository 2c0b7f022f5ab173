use super::*;

fn discover(words: &[&str]) -> Ask {
    Ask::Discover { words: words.iter().map(|word| (*word).to_owned()).collect() }
}

#[track_caller]
fn refused(words: &[&str]) -> String {
    check(&discover(words)).expect_err("refused").message
}

#[test]
fn only_letters_digits_spaces_underscores_and_hyphens_are_allowed() {
    assert_eq!(check(&discover(&[])), Ok(()));
    assert_eq!(check(&discover(&["read_file", "Read-2 files", ""])), Ok(()));
    let allowed = "allowed are letters and digits of ASCII, spaces, `_` and `-`";
    for (word, c) in [("a;b", "';'"), ("é", "'é'"), ("a.b", "'.'"), ("\0", "'\\0'"), ("%20", "'%'")]
    {
        let expected = format!("Invalid characters in search query: {c}; {allowed}");
        assert_eq!(refused(&["file", word]), expected);
    }
}

#[test]
fn count_and_length_of_words_are_limited() {
    let long = "x".repeat(MAX_CHARS);
    assert_eq!(check(&discover(&vec![long.as_str(); MAX_WORDS])), Ok(()));
    let expected = "Search query too long: it has 101 characters; at most 100 are allowed";
    assert_eq!(refused(&[&format!("{long}x")]), expected);
    let expected = "Too many search words: there are 101; at most 100 are allowed";
    assert_eq!(refused(&["x"; MAX_WORDS + 1]), expected);
}
