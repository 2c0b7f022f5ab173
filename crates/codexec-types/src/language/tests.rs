use super::*;

#[test]
fn every_language_is_read_by_its_name_and_its_short_form() {
    for language in Language::ALL {
        assert_eq!(Language::parse(language.name()), Some(language));
        assert_eq!(Language::parse(language.short()), Some(language));
    }
    for unknown in ["", "Python", "python3", "cobol", " js"] {
        assert_eq!(Language::parse(unknown), None, "{unknown:?}");
    }
}

#[test]
fn names_and_short_forms_of_languages_are_unique() {
    let mut words: Vec<&str> =
        Language::ALL.iter().flat_map(|language| [language.name(), language.short()]).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 2 * Language::ALL.len());
}

/// Frames use the names that people write.
#[test]
fn frames_use_the_language_names() {
    for language in Language::ALL {
        let text = serde_json::to_string(&language).expect("json");
        assert_eq!(text, format!("{:?}", language.name()));
    }
}
