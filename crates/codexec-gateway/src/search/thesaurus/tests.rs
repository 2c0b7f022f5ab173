use super::*;

#[test]
fn every_line_is_a_comment_or_a_group() {
    for line in TEXT.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let group = Group::read(line).unwrap_or_else(|| panic!("not a group: {line}"));
        assert!(!group.asked.is_empty() && !group.met.is_empty(), "{line}");
        let is_plain = |c: char| c.is_lowercase() || c.is_ascii_digit() || " =~>:_".contains(c);
        assert!(line.chars().all(is_plain), "only lower-case words: {line}");
        let met: Vec<&String> = group.met.iter().filter(|met| met.contains('_')).collect();
        assert!(met.is_empty(), "a phrase is what people say, not what is met: {line}");
    }
}

#[test]
fn a_word_that_means_half_of_everything_means_nothing() {
    let table = read();
    for (word, kin) in &table {
        assert!(kin.len() <= 60, "{word} has {} kin", kin.len());
    }
}

#[test]
fn the_nearest_kinship_counts() {
    let find = |of: &str, to: &str| {
        kin(&phrase_stem(of)).iter().find(|kin| kin.stem == stem(to)).map(|kin| kin.kind.share())
    };
    assert_eq!(find("folder", "directory"), Some(SAME));
    assert_eq!(find("get_rid", "delete"), Some(SAID_FOR));
    assert_eq!(find("delete", "get_rid"), None);
    assert_eq!(find("folder", "folder"), None);
}
