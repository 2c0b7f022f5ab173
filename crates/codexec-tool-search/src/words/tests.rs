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
fn chinese_japanese_and_korean_are_split_into_bigrams() {
    check("创建问题", &["创建", "建问", "问题"]);
    check("GitHubの課題を", &["git", "hub", "の課", "課題", "題を"]);
    check("파일 읽기, 창", &["파일", "읽기", "창"]);
    check("ファイル2つ", &["フア", "アイ", "イル", "2", "つ"]);
}

#[test]
fn the_lists_are_sorted_and_disjoint() {
    assert!(STOP_WORDS.is_sorted() && WEAK_WORDS.is_sorted());
    assert!(STOP_WORDS.iter().all(|word| !is_weak_word(word)));
    assert!(is_stop_word("the") && is_weak_word("give"));
    assert!(!is_stop_word("file") && !is_weak_word("file"));
}
