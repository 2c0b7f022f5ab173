use super::*;

fn pip(text: &str) -> Result<PackageName, InvalidPackage> {
    PackageName::parse(Language::Python, text)
}

fn npm(text: &str) -> Result<PackageName, InvalidPackage> {
    PackageName::parse(Language::Node, text)
}

const NOT_NAMES: &[&str] = &[
    "",
    " ",
    "-r",
    "--index-url=http://127.0.0.1:1",
    "-e.",
    ".",
    "..",
    "./a",
    "../a",
    "/etc",
    "a/b/c",
    "a\\b",
    "~",
    "~/a",
    "a b",
    "a ",
    " a",
    "a\t",
    "a\n",
    "a\0",
    "a\u{a0}",
    "é",
    "а",
    "a;b",
    "a; touch x",
    "a && b",
    "$(id)",
    "`id`",
    "a|b",
    "a#b",
    "a%20b",
    "a:b",
    "a?b",
    "git+https://example.invalid/a",
    "https://example.invalid/a.whl",
    "file:///a",
    "a@",
    "@",
    "@/a",
    "@a/",
    "@a",
    "@../a",
    "@a/../b",
    "a@npm:b",
    "a@file:.",
    "a@git+ssh://x/y",
    "a@github:x/y",
    "a@x/y",
    "a @ file:///x",
    "a@1@2",
    "a.whl",
    "A.ZIP",
    "a.tar.gz",
    "a.tgz",
    "a@1.tgz",
    "a==",
    "a==1==2",
    "a=1",
    "a===1",
    "a==1,",
    "a==1 ",
    "a== 1",
    "a>1.*",
    "a==-1",
    "a[",
    "a]",
    "a[]",
    "a[b",
    "a[b]c",
    "a[../b]",
    "a[b]]",
    "a[b;c]",
    "a[b]@http://x",
    "a'",
    "a\"",
    "a\u{202e}b",
    "_a",
    ".a",
    "a.",
    "a-",
    "*",
    "a@*",
    "a@ 1",
];

#[test]
fn pip_requirements_are_parsed() {
    for (text, name, version) in [
        ("pandas", "pandas", None),
        ("pandas==2.2.1", "pandas", Some("==2.2.1")),
        ("pandas>=2", "pandas", Some(">=2")),
        ("zope.interface~=6.0", "zope.interface", Some("~=6.0")),
        ("torch==2.3.0+cpu", "torch", Some("==2.3.0+cpu")),
        ("numpy>=1.26,<3,!=2.0.*", "numpy", Some(">=1.26,<3,!=2.0.*")),
        ("uvicorn[standard,a-b]>=0.30", "uvicorn", Some(">=0.30")),
        ("uvicorn[standard]", "uvicorn", None),
        ("pytz==1!2024.1", "pytz", Some("==1!2024.1")),
        ("a", "a", None),
    ] {
        let package = pip(text).unwrap();
        assert_eq!((package.as_str(), package.name(), package.version()), (text, name, version));
    }
}

#[test]
fn npm_requirements_are_parsed() {
    for (text, name, version) in [
        ("lodash", "lodash", None),
        ("lodash@4.17.21", "lodash", Some("4.17.21")),
        ("lodash@^4", "lodash", Some("^4")),
        ("lodash@>=4.0.0-rc.1", "lodash", Some(">=4.0.0-rc.1")),
        ("lodash@latest", "lodash", Some("latest")),
        ("socket.io", "socket.io", None),
        ("@types/node", "@types/node", None),
        ("@scope/name@1.2.3", "@scope/name", Some("1.2.3")),
    ] {
        let package = npm(text).unwrap();
        assert_eq!((package.as_str(), package.name(), package.version()), (text, name, version));
    }
}

#[test]
fn scr_4_options_paths_urls_and_archives_are_not_package_names() {
    for text in NOT_NAMES {
        assert!(pip(text).is_err(), "pip took {text:?}");
        let is_a_name_there = ["a.", "a-"].contains(text);
        assert_eq!(npm(text).is_ok(), is_a_name_there, "npm and {text:?}");
    }
    for text in ["Lodash", "a_B", "node_modules", "favicon.ico", "a==1"] {
        assert!(npm(text).is_err(), "npm took {text:?}");
    }
}

#[test]
fn every_length_is_limited() {
    let long = |count: usize| "a".repeat(count);
    assert!(pip(&long(128)).is_ok() && npm(&long(128)).is_ok());
    assert!(pip(&long(129)).is_err() && npm(&long(129)).is_err());
    assert!(npm(&format!("@{}/a", long(126))).is_err());
    assert!(pip(&format!("a=={}", "1".repeat(64))).is_ok());
    assert!(pip(&format!("a=={}", "1".repeat(65))).is_err());
    assert!(npm(&format!("a@{}", "1".repeat(65))).is_err());
    assert!(pip(&format!("a{}", [">1"; 8].join(","))).is_ok());
    assert!(pip(&format!("a{}", [">1"; 9].join(","))).is_err());
    assert!(pip(&format!("a[{}]", ["b"; 9].join(","))).is_err());
    let Err(InvalidPackage::Pip { text }) = pip(&" ".repeat(9_000)) else { panic!("taken") };
    assert_eq!(text.len(), 80);
}

#[test]
fn spellings_of_one_package_have_one_key() {
    let keys =
        ["My.Pkg", "my-pkg", "my__pkg==1", "MY-_.pkg[x]"].map(|text| pip(text).unwrap().key());
    assert_eq!(keys, ["my-pkg"; 4]);
    assert_eq!(npm("@a/b.c@1").unwrap().key(), "@a/b.c");
}

#[test]
fn languages_without_packages_are_refused() {
    let refused = PackageName::parse(Language::Bash, "jq").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "bash code has no packages of its own; packages are for python and node"
    );
}
