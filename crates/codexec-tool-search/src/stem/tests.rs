use super::*;

#[test]
fn the_forms_of_a_word_have_one_stem() {
    for forms in [
        &["list", "lists", "listed", "listing"][..],
        &["query", "queries", "querying"],
        &["create", "creates", "created", "creating", "creation"],
        &["delete", "deleted", "deleting", "deletion"],
        &["stop", "stops", "stopped", "stopping"],
        &["message", "messages", "messaging"],
        &["directory", "directories"],
        &["hope", "hoped", "hoping"],
    ] {
        let stems: Vec<String> = forms.iter().map(|form| stem(form)).collect();
        assert!(stems.iter().all(|stem| *stem == stems[0]), "{forms:?}: {stems:?}");
    }
}

#[test]
fn different_words_have_different_stems() {
    for (a, b) in [("user", "use"), ("status", "state"), ("page", "pager"), ("folder", "fold")] {
        assert_ne!(stem(a), stem(b), "{a} and {b}");
    }
    for word in ["s3", "k8s", "größe", "db", "ß", ""] {
        assert_eq!(stem(word), word);
    }
}
