use super::*;

#[track_caller]
fn check(language: Language, text: &str, fitting: &[&str], others: &[&str]) {
    let package = PackageName::parse(language, text).expect("a name");
    for version in fitting {
        assert!(satisfies(&package, version), "{text} and {version}");
    }
    for version in others {
        assert!(!satisfies(&package, version), "{text} and {version}");
    }
}

#[test]
fn pip_version_specifiers() {
    let check =
        |text, fitting: &[&str], others: &[&str]| check(Language::Python, text, fitting, others);
    check("a", &["0.0.1", "9"], &[]);
    check("a==1.2", &["1.2", "1.2.0"], &["1.2.1", "1.2rc1", "1"]);
    check("a==1.2.*", &["1.2", "1.2.9"], &["1.20", "1.3"]);
    check("a!=1.2", &["1.3", "1.2.1"], &["1.2", "1.2.0"]);
    check("a>=1.2,<2", &["1.2", "1.10"], &["1.1.9", "2.0", "10"]);
    check("a~=1.4.2", &["1.4.2", "1.4.10"], &["1.4.1", "1.5"]);
}

#[test]
fn npm_version_ranges() {
    let check =
        |text, fitting: &[&str], others: &[&str]| check(Language::Node, text, fitting, others);
    check("a@1.2.3", &["1.2.3"], &["1.2.4", "1.2.3-beta"]);
    check("a@1", &["1.0.0", "1.9.9"], &["2.0.0", "10.0.0"]);
    check("a@^1.2.3", &["1.2.3", "1.9.0"], &["1.2.2", "2.0.0"]);
    check("a@^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0", "0.2.2"]);
    check("a@~1.2.3", &["1.2.9"], &["1.3.0", "1.2.2"]);
    check("a@>=2", &["2.0.0", "3.1.0"], &["1.9.9"]);
    check("a@latest", &["0.0.1"], &[]);
}
