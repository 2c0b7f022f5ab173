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

/// THREAT[PKG-7]: another execution would import it, and the user's own would.
#[test]
fn pkg_7_what_code_installs_is_there_for_that_execution_only() {
    let index = Served::start();
    let mut seed = Seed::with(&json!({}), &from(&index));
    let python = "try:\n  import good\nexcept ImportError: pass\n\
                  done = await packages.install('good', 'python')\n\
                  import good\n\
                  listed = [one['package'] for one in (await packages.list())['packages']]\n\
                  [done['version'], good.VERSION, good.__file__, listed]";
    let node = "const done = await packages.install('plain@1', 'node');\n\
                const listed = (await packages.list()).packages.map((one) => one.package);\n\
                [done.version, (await import('plain')).default, require.resolve('plain'), listed]";
    let executions = seed.client.home.path().join("state/executions");
    for (language, code, values, look) in [
        (
            "python",
            python,
            json!(["1.1", "1.1", "/box/packages/python/good/__init__.py", ["good"]]),
            "import importlib.util\nimportlib.util.find_spec('good') is None",
        ),
        (
            "node",
            node,
            json!(["1.0.0", "plain 1", "/box/packages/node_modules/plain/index.js", ["plain"]]),
            "import('plain').then(() => false, () => true)",
        ),
    ] {
        let ran = seed.done("execute_code", &json!({"language": language, "code": code}));
        assert_eq!(ran["result"], values, "{language}: {ran}");
        // Neither the next one nor a session finds it, and no file of it is left.
        let ran = seed.done("execute_code", &json!({"language": language, "code": look}));
        assert_eq!(ran["result"], true, "{language}: {ran}");
        let left: Vec<_> = std::fs::read_dir(&executions).expect("listed").collect();
        assert!(left.is_empty(), "{left:?}");
        let listed = "JSON.stringify((await packages.list()).packages)";
        let ran = seed.done("execute_code", &json!({"language": "javascript", "code": listed}));
        assert_eq!(ran["result"], "[]", "{language}: {ran}");
    }
    // Code that can use no package of this kind is told where else it may go.
    let code = "return await packages.install('good', 'python').catch((error) => error.message)";
    let ran = seed.done("execute_code", &json!({"language": "javascript", "code": code}));
    let told = ran["result"].as_str().expect("a sentence");
    assert!(told.contains("session_id") && told.contains("python session"), "{told}");
}

#[test]
fn pkg_7_what_code_of_a_session_installs_is_there_for_that_session_only() {
    let index = Served::start();
    let mut seed = Seed::with(&json!({}), &from(&index));
    let session = seed.session("python");
    let install = "await packages.install('good', 'python')\nimport good\nprint(good.VERSION)";
    assert_eq!(seed.cell(&session, install), "1.1\n");
    assert_eq!(
        seed.cell(&session, "print(good.__file__)"),
        "/box/packages/python/good/__init__.py\n"
    );
    let look = "import importlib.util\nprint(importlib.util.find_spec('good') is None)";
    let other = seed.session("python");
    assert_eq!(seed.cell(&other, look), "True\n");
    let ran = seed.done("execute_code", &json!({"language": "python", "code": look}));
    assert_eq!(ran["stdout"], "True\n", "{ran}");
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
