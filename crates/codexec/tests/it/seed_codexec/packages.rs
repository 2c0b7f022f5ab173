use serde_json::json;

use super::{Seed, like};
use crate::packages::index::Served;

fn from(index: &Served) -> String {
    format!(
        "[packages]\npython-index = '{}'\nnpm-registry = '{}'\n",
        index.address("simple"),
        index.address("npm/")
    )
}

#[test]
fn a_package_is_installed_into_a_session_and_used_there() {
    let index = Served::start();
    let mut seed = Seed::with(&json!({}), &from(&index));
    for (language, package, version, code, value) in [
        ("python", "needs-good", "2.0", "import needs_good, good\nprint(good.VERSION)", "1.1\n"),
        ("node", "plain@1", "1.0.0", "console.log((await import('plain')).default)", "plain 1\n"),
    ] {
        let session = seed.session(language);
        let asked = json!({"session_id": session, "package": package, "language": language});
        let installed = seed.done("install_package", &asked);
        let example = json!({"success": true, "package": "", "version": "", "install_output": ""});
        like(&installed, &example, &["also_installed"]);
        assert_eq!(installed["version"], version);
        assert_eq!(seed.cell(&session, code), value);
    }
    index.check_untouched();
}

#[test]
fn what_a_script_needs_is_checked_before_it_runs_and_found_once_it_is_there() {
    let index = Served::start();
    let mut seed = Seed::with(&json!({}), &from(&index));
    let code = "import good\nprint(good.VERSION)";
    let script = json!({"name": "Needs it", "description": "needs a package", "language": "python",
                        "code": code, "packages": ["good>=1.1"]});
    seed.done("save_script", &script);
    let run = json!({"name": "Needs it"});
    let (code, sentence) = seed.refused("run_script", &run);
    assert_eq!(code, "MISSING_PACKAGES", "{sentence}");
    assert!(sentence.contains("install_package"), "{sentence}");
    let asked = json!({"package": "good", "language": "python"});
    assert_eq!(seed.done("install_package", &asked)["version"], "1.1");
    let ran = seed.done("run_script", &run);
    assert!(ran.to_string().contains("1.1"), "{ran}");
}

/// The attack FS-009: whatever is no name is refused before anything starts.
#[test]
fn pkg_1_an_argument_of_the_installer_is_no_package() {
    let index = Served::start();
    let mut seed = Seed::with(&json!({}), &from(&index));
    let outside = index.outside.path().display();
    let long = "x".repeat(10_000);
    let cases = [
        format!("pandas; touch {outside}/planted"),
        "--index-url=http://127.0.0.1:9/simple".to_owned(),
        format!("-r {outside}/secret"),
        "-e .".to_owned(),
        "./evil".to_owned(),
        format!("file://{outside}/evil"),
        format!("evil @ file://{outside}/evil"),
        format!("git+file://{outside}/evil"),
        "http://127.0.0.1:9/x.whl".to_owned(),
        "pandas --install-option=x".to_owned(),
        "pandas\n-r x".to_owned(),
        "\u{440}andas".to_owned(),
        "../x".to_owned(),
        "@scope/../../x".to_owned(),
        "npm:left-pad@http://127.0.0.1:9".to_owned(),
        "-g evil".to_owned(),
        long,
        String::new(),
    ];
    for language in ["python", "node"] {
        for package in &cases {
            let asked = json!({"language": language, "package": package});
            let (code, sentence) = seed.refused("install_package", &asked);
            assert_eq!(code, "INVALID_ARGS", "{language} {package:?}: {sentence}");
            assert!(sentence.starts_with("package"), "{sentence}");
        }
    }
    index.check_untouched();
}

#[test]
fn numpy_and_a_pure_package_and_one_of_npm_come_from_the_index_of_this_machine() {
    let usual = "/etc/ssl/certs/ca-certificates.crt";
    let is_there = std::path::Path::new(usual).is_file();
    let settings =
        if is_there { format!("[packages]\nca-file = '{usual}'\n") } else { String::new() };
    let mut seed = Seed::with(&json!({}), &settings);
    let python = seed.session("python");
    for package in ["six", "numpy"] {
        let asked = json!({"session_id": python, "package": package, "language": "python"});
        assert_eq!(seed.done("install_package", &asked)["package"], package);
    }
    let code = "import six, numpy\nprint(six.PY3, numpy.arange(10).sum(), numpy.__file__)";
    let said = seed.cell(&python, code);
    assert!(said.starts_with("True 45 /box/packages/python/numpy/"), "{said}");
    let node = seed.session("node");
    let asked = json!({"session_id": node, "package": "left-pad@1.3.0", "language": "node"});
    assert_eq!(seed.done("install_package", &asked)["version"], "1.3.0");
    let said = seed.cell(&node, "console.log(require('left-pad')('7', 3, '0'))");
    assert_eq!(said, "007\n");
}
