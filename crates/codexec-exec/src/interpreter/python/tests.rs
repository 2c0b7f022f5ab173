use super::*;

/// THREAT[CFG-8]: neither `*.pth` files nor `sitecustomize` run when an interpreter is queried.
/// Directories that `*.pth` files name are still found.
#[test]
fn cfg_8_querying_python_runs_no_package_code() {
    let folder = tempfile::tempdir().expect("a directory");
    let venv = folder.path().join("venv");
    let environment: Vec<(String, std::ffi::OsString)> = Vec::new();
    let made = ["-m", "venv", "--without-pip", venv.to_str().expect("UTF-8")];
    query_program(Path::new("/usr/bin/python3"), &made, &environment, QUERY_TIMEOUT).expect("made");
    let python = venv.join("bin/python");
    let said = query_program(&python, &ARGUMENTS, &environment, QUERY_TIMEOUT).expect("an answer");
    let about: PythonInfo = serde_json::from_str(said.trim()).expect("JSON");
    let packages = about.path.iter().find(|path| path.starts_with(&venv)).expect("its own");
    let marker = folder.path().join("ran");
    let run = format!("open({:?}, 'w')", marker.display().to_string());
    let pth = format!("# a comment\nimport sys; {run}\n{}\n/nowhere\n", folder.path().display());
    std::fs::write(packages.join("evil.pth"), pth).expect("written");
    std::fs::write(packages.join("sitecustomize.py"), run).expect("written");
    let said = query_program(&python, &ARGUMENTS, &environment, QUERY_TIMEOUT).expect("an answer");
    let about: PythonInfo = serde_json::from_str(said.trim()).expect("JSON");
    assert!(!marker.exists(), "code of a package has run");
    assert!(about.path.iter().any(|path| path == folder.path()), "{:?}", about.path);
    assert!(!about.path.iter().any(|path| path == Path::new("/nowhere")));
    assert!(about.prefixes.contains(&venv), "{:?}", about.prefixes);
    let said = query_program(&python, &["-c", "1"], &environment, QUERY_TIMEOUT);
    assert!(said.is_ok() && marker.exists(), "the test plants nothing that runs");
}
