use super::*;

#[test]
fn names_are_converted_to_slugs() {
    for (name, slug) in [
        ("parse-excel-report", "parse-excel-report"),
        ("Parse Excel Report", "parse-excel-report"),
        ("parse_excel.v2", "parse_excel-v2"),
        ("index.json", "index-json"),
        ("a..b", "a-b"),
        ("7", "7"),
        ("common", "common"),
        ("com10", "com10"),
    ] {
        assert_eq!(ScriptName::parse(name).unwrap().slug, slug);
    }
}

#[test]
fn every_slug_is_its_own_slug() {
    for name in ["Parse Excel", "a.b c", "A_b-C", "x- y", "x. -y", "1 .2"] {
        let slug = ScriptName::parse(name).unwrap().slug;
        assert!(ScriptName::is_slug(&slug), "{slug}");
    }
    for folder in ["My-Script", "a b", "a.b", "-a", "_a", "con"] {
        assert!(!ScriptName::is_slug(folder), "{folder}");
    }
}

#[test]
fn the_length_of_a_name_is_limited() {
    assert!(ScriptName::parse(&"a".repeat(64)).is_ok());
    let err = ScriptName::parse(&"a".repeat(9_000)).unwrap_err();
    assert!(err.to_string().len() < 300, "{err}");
}
