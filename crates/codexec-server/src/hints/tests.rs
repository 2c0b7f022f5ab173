use super::*;

#[test]
fn the_missing_module_is_read_from_pythons_message() {
    let module = missing_module;
    assert_eq!(module("ModuleNotFoundError: No module named 'sklearn.svm'"), Some("sklearn.svm"));
    assert_eq!(module("ModuleNotFoundError: No module named 'a; b'"), None);
    assert_eq!(module("no"), None);
    let hint = missing_package("sklearn.svm", true);
    assert_eq!(hint, "first write `await packages.install(\"scikit-learn\")`");
    let hint = missing_package("pandas", false);
    assert_eq!(hint, "the user installs it with `codexec packages install pandas`");
}

#[test]
fn a_missing_file_names_what_is_visible_and_the_field_of_the_toolset() {
    let words = RequestWords::default();
    let line = "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'";
    let hint = |dir: Option<&str>, words| missing_file(line, dir.map(Path::new), words);
    let below = "of the user's files, code sees only what is below /srv/a";
    assert_eq!(hint(Some("/srv/a"), words).as_deref(), Some(below));
    let field = "code sees none of the user's files; give their directory as working_dir";
    assert_eq!(hint(None, words).as_deref(), Some(field));
    let none = RequestWords { directory: None, ..words };
    assert!(
        hint(None, none)
            .is_some_and(|hint| hint.ends_with("a tool of an MCP server that reads them"))
    );
    // A program that is not there is no file of the user's.
    assert_eq!(missing_file("[Errno 2] No such file or directory: 'git'", None, words), None);
}

#[test]
fn only_the_end_of_the_output_counts() {
    let long = format!("{}\u{e9}{}", "x".repeat(10), "y".repeat(SEARCHED_BYTES - 1));
    assert_eq!(tail(&long).len(), SEARCHED_BYTES - 1);
    assert_eq!(tail("short"), "short");
}
