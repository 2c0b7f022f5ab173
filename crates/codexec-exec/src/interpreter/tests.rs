//! Runs the tests of the shims, which are written in the shims' own languages.
#![expect(clippy::disallowed_methods, reason = "starts the interpreters that run them")]

use std::path::Path;
use std::process::Command;

#[track_caller]
fn check(program: &str, arguments: &[&str], folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/shim").join(folder);
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}", said.join("\n"));
}

#[test]
fn the_python_shims_own_tests_pass() {
    check("python3", &["-m", "unittest", "-q"], "python");
}

#[test]
fn the_node_shims_own_tests_pass() {
    check("node", &["--test", "."], "node");
}
