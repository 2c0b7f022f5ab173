use super::*;

#[test]
fn every_line_is_a_comment_or_a_group() {
    for line in TEXT.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let group = SynonymGroup::parse(line).unwrap_or_else(|| panic!("not a group: {line}"));
        assert!(!group.query.is_empty() && !group.indexed.is_empty(), "{line}");
        let is_allowed = |c: char| c.is_lowercase() || c.is_ascii_digit() || " =~>:_".contains(c);
        assert!(line.chars().all(is_allowed), "only lower-case words: {line}");
        let phrases: Vec<&String> =
            group.indexed.iter().filter(|stem| stem.contains('_')).collect();
        assert!(phrases.is_empty(), "the index has single words, so a phrase cannot match: {line}");
    }
}

#[test]
fn no_word_has_too_many_synonyms() {
    let table = read_table();
    for (word, synonyms) in &table {
        assert!(synonyms.len() <= 60, "{word} has {} synonyms", synonyms.len());
    }
}

#[test]
fn the_closest_relation_counts() {
    let find = |of: &str, to: &str| {
        let found = synonyms(&phrase_stem(of)).iter().find(|synonym| synonym.stem == stem(to));
        found.map(|synonym| synonym.kind.share())
    };
    assert_eq!(find("folder", "directory"), Some(SAME));
    assert_eq!(find("get_rid", "delete"), Some(COLLOQUIAL));
    assert_eq!(find("delete", "get_rid"), None);
    assert_eq!(find("folder", "folder"), None);
}
