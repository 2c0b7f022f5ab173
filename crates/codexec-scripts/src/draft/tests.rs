use serde_json::json;

use super::*;

fn draft() -> ScriptDraft {
    ScriptDraft {
        name: "s".to_owned(),
        description: String::new(),
        language: Language::Python,
        code: "1".to_owned(),
        tags: Vec::new(),
        packages: Vec::new(),
        parameters: None,
        source_execution_id: None,
        saved_by: None,
        expose: false,
    }
}

#[track_caller]
fn check(draft: ScriptDraft, message: &str) {
    let err = draft.validate().unwrap_err();
    assert_eq!((err.to_string().as_str(), err.code()), (message, "INVALID_SCRIPT"));
}

#[test]
fn every_field_has_a_limit() {
    let tags = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
    let packages = |count: usize| (0..count).map(|number| format!("p{number}")).collect::<Vec<_>>();
    let schema = |bytes: usize| json!({"description": "x".repeat(bytes - 18)});
    let largest = ScriptDraft {
        description: "x".repeat(4096),
        code: "x".repeat(1 << 20),
        tags: tags(50),
        packages: packages(100),
        parameters: Some(schema(65_536)),
        ..draft()
    };
    assert!(largest.validate().is_ok());
    check(
        ScriptDraft { code: "x".repeat((1 << 20) + 1), ..draft() },
        "`code` has 1048577 bytes; at most 1048576 are allowed",
    );
    check(
        ScriptDraft { description: "x".repeat(4097), ..draft() },
        "`description` has 4097 bytes; at most 4096 are allowed",
    );
    check(
        ScriptDraft { tags: tags(51), ..draft() },
        "`tags` has 51 entries; at most 50 are allowed",
    );
    check(
        ScriptDraft { packages: packages(101), ..draft() },
        "`packages` has 101 entries; at most 100 are allowed",
    );
    check(
        ScriptDraft { parameters: Some(schema(65_537)), ..draft() },
        "`parameters` has 65537 bytes; at most 65536 are allowed",
    );
}

#[test]
fn tags_are_short_visible_and_unique() {
    let tags = |tags: &[&str]| ScriptDraft {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..draft()
    };
    assert!(tags(&[&"ä".repeat(64), "two words"]).validate().is_ok());
    let (_, meta, _) = tags(&["x", "X", "y", "x"]).validate().unwrap();
    assert_eq!(meta.tags, ["x", "y"]);
    for bad in ["", " x", "x\n", "a\tb", "a\u{200b}b", "\u{202e}x", "\u{1b}[2J", &"x".repeat(65)] {
        let err = tags(&[bad]).validate().unwrap_err();
        assert_eq!(err.code(), "INVALID_SCRIPT", "{bad:?}");
    }
}

#[test]
fn scr_4_packages_are_names_and_never_options_or_urls() {
    for bad in ["a; touch x", "--index-url=http://127.0.0.1:1", "../a", "git+https://x.invalid/a"] {
        let packages = vec!["pandas".to_owned(), bad.to_owned()];
        let err = ScriptDraft { packages, ..draft() }.validate().unwrap_err();
        assert!(err.to_string().starts_with("`packages` has an invalid name: "), "{err}");
    }
    let bash = ScriptDraft { language: Language::Bash, packages: vec!["jq".to_owned()], ..draft() };
    check(
        bash,
        "`packages` has an invalid name: bash code has no packages of its own; packages are for \
         python and node",
    );
}

#[test]
fn the_source_execution_is_a_valid_id() {
    let from = |id: &str| ScriptDraft { source_execution_id: Some(id.to_owned()), ..draft() };
    assert!(from("exec_a1b2c3").validate().is_ok());
    for bad in ["", "exec_", "../../x", "exec_a/b", "sess_a1", "exec_a\0"] {
        assert!(from(bad).validate().is_err(), "{bad:?}");
    }
}

#[test]
fn code_must_not_be_empty() {
    check(ScriptDraft { code: " \n".to_owned(), ..draft() }, "`code` must not be empty");
}
