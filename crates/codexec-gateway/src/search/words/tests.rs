use super::*;

fn check(text: &str, expected: &[&str]) {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.to_owned()));
    assert_eq!(words, expected, "{text}");
}

#[test]
fn identifiers_are_split() {
    check("getHTTPStatus", &["get", "http", "status"]);
    check("create_pull-request.v2", &["create", "pull", "request", "v2"]);
    check("the server's README.md", &["the", "server", "readme", "md"]);
    check("Größe ändern", &["größe", "ändern"]);
    check("", &[]);
    check("'' _ ..", &[]);
}

#[test]
fn the_lists_are_sorted_and_apart() {
    assert!(STOP.is_sorted() && FAINT.is_sorted());
    assert!(STOP.iter().all(|word| !is_faint(word)));
    assert!(is_stop("the") && is_faint("give") && !is_stop("file") && !is_faint("file"));
}
