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
fn no_two_languages_share_a_word() {
    let mut words: Vec<&str> =
        Language::ALL.iter().flat_map(|language| [language.name(), language.short()]).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 2 * Language::ALL.len());
}

/// What stands in frames is what people write.
#[test]
fn a_frame_has_the_same_names() {
    for language in Language::ALL {
        let text = serde_json::to_string(&language).expect("json");
        assert_eq!(text, format!("{:?}", language.name()));
    }
}
