use serde_json::{Value, json};

use super::{dependencies::REGISTRY, *};

#[test]
fn an_allowed_edge_is_fine() {
    edges("codexec-exec", &json!([dependency("codexec-sandbox"), dependency("tokio")]), &[]);
}

#[test]
fn a_forbidden_edge_is_found() {
    let finding = "crates/codexec-store/Cargo.toml: `codexec-store` may not use \
                   `codexec-gateway`, remove the dependency (allowed: codexec-types, \
                   codexec-files)";
    edges("codexec-store", &json!([dependency("codexec-gateway")]), &[finding]);
    edges("codexec-store", &json!([dev_dependency("codexec-gateway")]), &[finding]);
}

#[test]
fn the_binarys_tests_may_use_anything() {
    edges("codexec", &json!([dev_dependency("rmcp")]), &[]);
    let finding = "crates/codexec/Cargo.toml: only codexec-gateway, codexec-server, \
                   codexec-compat may use `rmcp`, go through that crate";
    edges("codexec", &json!([dependency("rmcp")]), &[finding]);
}

#[test]
fn heavy_dependencies_have_owners() {
    edges("codexec-js", &json!([dependency("oxc_parser"), dependency("rquickjs")]), &[]);
    let finding = "crates/codexec-exec/Cargo.toml: only codexec-js may use `oxc_parser`, \
                   go through that crate";
    edges("codexec-exec", &json!([dependency("oxc_parser")]), &[finding]);
}

#[test]
fn features_and_unknown_crates_are_found() {
    let package = json!({"name": "xtask", "dependencies": [], "features": {"fast": []}});
    let findings = crates::check(&json!({ "packages": [package] }));
    assert_eq!(
        findings,
        ["xtask/Cargo.toml: [features] are not allowed, make the choice a setting"]
    );
    let package = json!({"name": "codexec-core", "dependencies": [], "features": {}});
    assert_eq!(crates::check(&json!({ "packages": [package] })).len(), 1);
}

#[test]
fn confined_crates_are_named_only_in_their_module() {
    let check = |path: &str| {
        let (path, text) = (path.to_owned(), "use rusqlite::Connection;\n".to_owned());
        sources::check(&[TextFile { path, text }]).len()
    };
    assert_eq!(check("crates/codexec-store/src/sqlite.rs"), 0);
    assert_eq!(check("crates/codexec-store/src/sqlite/tests/full.rs"), 0);
    assert_eq!(check("crates/codexec/tests/it/durability.rs"), 0);
    assert_eq!(check("crates/codexec-store/src/store.rs"), 1);
    assert_eq!(check("crates/codexec-store/src/sqlite_rows.rs"), 1);
    assert_eq!(check("crates/codexec-server/src/records.rs"), 1);
}

#[test]
fn licences_are_checked() {
    let deny = "[licenses]\nallow = [\n  \"MIT\",\n  \"Zlib\",\n  \"Apache-2.0 WITH X\",\n]\n";
    let is_allowed = |licence: &str| {
        let package =
            json!({"name": "a", "version": "1.0.0", "license": licence, "source": REGISTRY});
        dependencies::check(&json!({ "packages": [package] }), deny).is_empty()
    };
    for licence in [
        "MIT",
        "GPL-2.0-only OR MIT",
        "BSD/MIT",
        "(BSD OR MIT) AND Zlib",
        "Apache-2.0 WITH X OR BSD",
        "BSD OR MIT AND Zlib",
    ] {
        assert!(is_allowed(licence), "{licence}");
    }
    for licence in
        ["", "BSD", "MIT AND BSD", "Apache-2.0", "Zlib WITH X", "MIT AND (BSD OR X)", "MIT Zlib"]
    {
        assert!(!is_allowed(licence), "{licence}");
    }
}

#[test]
fn sources_and_forbidden_dependencies_are_found() {
    let deny = "allow = [\n\"MIT\",\n]\n";
    let package = |name: &str, source: Value| json!({"name": name, "version": "1.0.0", "license": "MIT", "source": source});
    let check = |package: Value| dependencies::check(&json!({ "packages": [package] }), deny);
    assert_eq!(check(package("a", json!(null))), Vec::<String>::new());
    assert_eq!(
        check(package("a", json!("git+https://example.invalid/a"))),
        [
            "Cargo.lock: `a` 1.0.0 comes from `git+https://example.invalid/a`, use a version from the \
          registry"
        ]
    );
    assert_eq!(check(package("openssl-sys", json!(REGISTRY))).len(), 1);
    let no_list = "deny.toml: has no list `allow` of licences, add one";
    assert_eq!(dependencies::check(&json!({}), ""), [no_list]);
}

#[test]
fn sources_are_checked() {
    let lint = concat!("#[al", "low(dead_code)]\nfn f() {}\n");
    source("crates/a/src/f.rs", lint, "has an `allow` attribute, write `expect` with a reason");
    let lifted = "#[expect(\n    unsafe_code,\n    reason = \"x\"\n)]\n";
    let moved = "allows `unsafe_code`, move the code to codexec-sandbox";
    source("crates/codexec-exec/src/f.rs", lifted, moved);
    source("crates/codexec-sandbox/src/f.rs", lifted, "");
    source("crates/a/src/f.rs", &"\n".repeat(701), "701 lines, split it below 700");
    let name = "the name is too general, name it after its content";
    source("crates/a/src/utils.rs", "", name);
}

#[test]
fn threats_are_compared_in_both_directions() {
    let table = "| ID | threat |\n|---|---|\n| ESC-2 | reads files |\n";
    let stops = concat!("// THREAT", "[ESC-2]: the root is empty\n");
    let tests = "#[test]\nfn esc_2_reads_nothing() {}\n";
    threats(table, stops, tests, &[]);
    let no_code =
        concat!("docs/threats.md: no code has THREAT", "[ESC-2], mark the code that stops it");
    threats(table, "", tests, &[no_code]);
    let no_test = "docs/threats.md: no test of ESC-2, write one named `esc_2_...`";
    threats(table, stops, "fn escape() {}", &[no_test]);
    let unknown_test = "crates/a/tests/it/escape.rs: `esc_9_x` tests the unknown threat ESC-9, add it to \
                        docs/threats.md";
    threats(table, stops, &format!("{tests}async fn esc_9_x() {{}}"), &[unknown_test]);
    let other = concat!("// THREAT", "[NET-1]\n");
    let unknown_tag =
        "crates/a/src/lib.rs: marks the unknown threat NET-1, add it to docs/threats.md";
    threats(table, &format!("{stops}{other}"), tests, &[unknown_tag]);
}

#[test]
fn documents_are_checked() {
    text("README.md", "hello\n", &[]);
    let long = "README.md: 81 lines, keep it to 80 and move the rest to docs";
    text("README.md", &"\n".repeat(81), &[long]);
    let missing = "README.md: missing, write one screen";
    let path = concat!("see `/wo", "rk/x`\nnot/wo", "rk/x");
    let machine = concat!("a.md:1: `/wo", "rk/` is a path of one machine, write it relative");
    text("a.md", path, &[missing, machine]);
    let host = concat!("a.md:1: `pypi", ".org` is a registry's host, name the registry in words");
    text("a.md", concat!("https://pypi", ".org/x"), &[missing, host]);
}

#[track_caller]
fn edges(name: &str, dependencies: &Value, expected: &[&str]) {
    let package = json!({"name": name, "dependencies": dependencies, "features": {}});
    assert_eq!(crates::check(&json!({ "packages": [package] })), expected);
}

fn dependency(name: &str) -> Value {
    json!({"name": name, "kind": null})
}

fn dev_dependency(name: &str) -> Value {
    json!({"name": name, "kind": "dev"})
}

#[track_caller]
fn source(path: &str, text: &str, expected: &str) {
    let findings = sources::check(&[file(path, text)]);
    let expected = if expected.is_empty() { vec![] } else { vec![format!("{path}: {expected}")] };
    assert_eq!(findings, expected);
}

#[track_caller]
fn threats(table: &str, stops: &str, tests: &str, expected: &[&str]) {
    let files = [
        file("docs/threats.md", table),
        file("crates/a/src/lib.rs", stops),
        file("crates/a/tests/it/escape.rs", tests),
    ];
    assert_eq!(super::threats::check(&files), expected);
}

#[track_caller]
fn text(path: &str, text: &str, expected: &[&str]) {
    assert_eq!(documents::check(&[file(path, text)]), expected);
}

fn file(path: &str, text: &str) -> TextFile {
    TextFile { path: path.to_owned(), text: text.to_owned() }
}
