use super::*;

fn package(language: Language, text: &str) -> PackageName {
    PackageName::parse(language, text).expect("a name")
}

fn patterns(texts: &[&str]) -> Vec<PackagePattern> {
    texts.iter().map(|text| PackagePattern::parse(text).expect("a pattern")).collect()
}

#[test]
fn pkg_4_lists_match_every_spelling_and_an_empty_allow_list_allows_nothing() {
    let deny = patterns(&["My.Evil", "npm:@bad/*", "pip:left-pad"]);
    let settings = PackageSettings { deny, ..PackageSettings::default() };
    for spelling in ["my-evil", "MY_EVIL", "my.evil==1.0", "my--evil[x]"] {
        assert!(settings.denies(&package(Language::Python, spelling)), "{spelling}");
    }
    for fine in ["my-evil2", "myevil"] {
        assert_eq!(settings.refusal_reason(&package(Language::Python, fine)), None, "{fine}");
    }
    assert!(settings.denies(&package(Language::Node, "@bad/thing@1")));
    assert!(!settings.denies(&package(Language::Node, "left-pad")));
    assert!(settings.denies(&package(Language::Python, "left_pad")));

    let nothing = PackageSettings { allow: Some(Vec::new()), ..PackageSettings::default() };
    assert!(nothing.refusal_reason(&package(Language::Python, "six")).is_some());
    let some = PackageSettings { allow: Some(patterns(&["num*"])), ..PackageSettings::default() };
    assert_eq!(some.refusal_reason(&package(Language::Python, "numpy")), None);
    assert!(some.refusal_reason(&package(Language::Python, "six")).is_some());
    let both = PackageSettings { deny: patterns(&["numpy"]), ..some };
    assert!(both.refusal_reason(&package(Language::Python, "numpy")).is_some());
}

#[test]
fn invalid_names_are_not_patterns() {
    for text in ["", "cargo:x", "a b", "-r x\n", "пакет", "a*b"] {
        assert_eq!(PackagePattern::parse(text), None, "{text:?}");
    }
    assert!(PackagePattern::parse("*").is_some());
}
