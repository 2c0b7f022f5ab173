//! A part of CPython's own tests ends in a guest as it does outside; `cargo xtask suite` runs them
//! all.

use std::io::Write as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Client, keep_settings};

/// The same program on both sides.
const PROGRAM: &str = include_str!("../../../../xtask/src/suite/run_module.py");

/// Quick ones, of all that a program does: values, texts, files, threads, processes, signals.
const MODULES: [&str; 12] = [
    "test_csv",
    "test_dict",
    "test_filecmp",
    "test_fileio",
    "test_popen",
    "test_glob",
    "test_json",
    "test_pipes",
    "test_queue",
    "test_struct",
    "test_threadsignals",
    "test_zlib",
];

const ASK: &str = "import sys, test.test_json, test.test_zlib; print(sys.executable)";

/// Debian's interpreter comes without its tests, so this may be missing anywhere.
fn interpreter() -> Option<String> {
    let found = ["python3", "/usr/local/bin/python3"].into_iter().find_map(|name| {
        let output = Command::new(name).args(["-c", ASK]).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !path.is_empty()).then_some(path)
    });
    if found.is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: no python3 has its own tests with it");
    }
    found
}

/// What came of a module, without the words.
fn ended(mut result: Value) -> Value {
    result.as_object_mut().expect("an object").remove("log");
    result
}

fn outside(interpreter: &str, module: &str) -> Value {
    let folder = tempfile::tempdir().expect("a directory");
    let result = folder.path().join("result");
    let end = format!(
        "import json\nended = json.dumps(run({module:?}))\nopen({result:?}, 'w').write(ended)\n"
    );
    let work = folder.path().join("work");
    std::fs::create_dir(&work).expect("made");
    std::fs::write(work.join("main.py"), format!("{PROGRAM}\n\n{end}")).expect("written");
    let mut command = Command::new(interpreter);
    command.args(["-B", "main.py"]).current_dir(&work).env("TMPDIR", folder.path());
    let output = command.output().expect("it starts");
    let text = std::fs::read_to_string(result);
    let text = text.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    ended(serde_json::from_str(&text).expect("JSON"))
}

#[test]
fn cpythons_own_tests_end_in_a_guest_as_they_do_outside() {
    let Some(interpreter) = interpreter() else { return };
    let mut client = Client::with(&json!({}), |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        let settings = format!(
            "[limits]\nprocesses = 512\nmemory-mib = 2048\n[python]\ninterpreter = {interpreter:?}\n"
        );
        keep_settings(&home, &settings);
    });
    let calls = MODULES.map(|module| {
        let code =
            format!("{PROGRAM}\n\nimport json\njson.dumps({{**run({module:?}), 'log': ''}})");
        client.send_call("execute_code", &json!({"language": "python", "code": code}))
    });
    for (module, id) in MODULES.into_iter().zip(calls) {
        let said = client.wait_call(id).fine();
        let json = said.lines().find(|line| line.starts_with("{\"tests\""));
        let inside = json.and_then(|json| serde_json::from_str(json).ok());
        let inside = ended(inside.unwrap_or_else(|| panic!("{module}: {said}")));
        assert_eq!(inside, outside(&interpreter, module), "{module}");
        assert!(inside["tests"].as_u64() > Some(0), "{module}");
    }
}
