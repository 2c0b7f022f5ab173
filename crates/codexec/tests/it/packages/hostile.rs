use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::*;

#[track_caller]
fn check(told: &Value) {
    for (name, what) in told.as_object().expect("an object") {
        let what = what.as_str().expect("a text");
        if ["inner link", "link", "pipe", "set-id", "environment"].contains(&name.as_str()) {
            continue;
        }
        assert!(!what.starts_with("DONE") || what.contains(" 403 "), "{name}: {what}");
    }
    for asked in ["tunnel", "plain"].iter().filter_map(|name| told.get(name)) {
        assert!(asked.as_str().is_some_and(|text| text.contains(" 403 ")), "{asked}");
    }
}

#[test]
fn pkg_1_code_of_a_pip_package_cannot_get_out_while_it_is_built() {
    let index = Served::start();
    let machine = Machine::with(
        &index,
        PackageSettings { install_scripts: true, ..PackageSettings::default() },
    );
    let session = machine.session();
    block_on(async {
        let installed =
            machine.install(Language::Python, "tattle", InstallTarget::Session(&session)).await;
        assert_eq!(installed.expect("installed").version, "1.0");
    });
    let shown = Packages::create_session_folder(&session).expect("made");
    let told = std::fs::read_to_string(shown.join("python/told.json")).expect("kept");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    check(&told);
    let environment = told["environment"].as_str().expect("names");
    assert!(!environment.contains("GIVEN_TO_GUESTS"), "{environment}");
    index.check_untouched();
}

#[test]
fn pkg_5_code_of_an_npm_package_leaves_files_and_nothing_else() {
    let index = Served::start();
    let machine = Machine::with(
        &index,
        PackageSettings { install_scripts: true, ..PackageSettings::default() },
    );
    let session = machine.session();
    block_on(async {
        machine
            .install(Language::Node, "tattle", InstallTarget::Session(&session))
            .await
            .expect("installed");
    });
    let own = Packages::create_session_folder(&session).expect("made").join("node_modules/tattle");
    let told = std::fs::read_to_string(own.join("told.json")).expect("kept");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    check(&told);
    assert_eq!(told["link"], "DONE: undefined");
    assert!(own.join("inside-link").is_symlink());
    for gone in ["outside-link", "pipe"] {
        assert!(std::fs::symlink_metadata(own.join(gone)).is_err(), "{gone}");
    }
    for path in all_files(&session) {
        let mode =
            std::fs::symlink_metadata(session.join(&path)).expect("there").permissions().mode();
        assert_eq!(mode & 0o6000, 0, "{}", path.display());
    }
    index.check_untouched();
}

#[test]
fn pkg_4_code_of_a_package_does_not_run_unless_it_may() {
    let index = Served::start();
    let machine = Machine::with(&index, PackageSettings::default());
    let session = machine.session();
    block_on(async {
        let installed =
            machine.install(Language::Node, "tattle", InstallTarget::Session(&session)).await;
        let installed = installed.expect("installed");
        assert!(
            installed.output.contains("install scripts were not run: tattle"),
            "{}",
            installed.output
        );
        let own =
            Packages::create_session_folder(&session).expect("made").join("node_modules/tattle");
        assert!(own.join("index.js").exists() && !own.join("told.json").exists());
        let error =
            machine.install(Language::Python, "tattle", InstallTarget::Session(&session)).await;
        let error = error.expect_err("it has to be built");
        assert_eq!(error.code(), "PACKAGE_NEEDS_BUILD", "{error}");
        assert!(error.to_string().contains("packages.install-scripts"), "{error}");
    });
    index.check_untouched();
}

#[test]
fn pkg_3_what_is_too_big_is_not_kept_and_leaves_what_was_there() {
    let index = Served::start();
    let machine =
        Machine::with(&index, PackageSettings { max_bytes: 8 << 20, ..PackageSettings::default() });
    let session = machine.session();
    let target = InstallTarget::Session(&session);
    block_on(async {
        machine.install(Language::Python, "good", target).await.expect("installed");
        let before = all_files(&session);
        for package in ["big", "huge"] {
            let error = machine.install(Language::Python, package, target).await;
            let error = error.expect_err("too big");
            assert_eq!(error.code(), "PACKAGE_TOO_BIG", "{package}: {error}");
            assert_eq!(all_files(&session), before);
        }
    });
}
