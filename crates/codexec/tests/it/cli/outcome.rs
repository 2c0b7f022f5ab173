//! `exec --json`.

use serde_json::{Value, json};

use super::CliHome;

/// An outcome as JSON, without what differs every time.
#[track_caller]
fn check_json(args: &[&str], code: i32, expected: &Value) {
    let ran = CliHome::new(&[]).run(&[&["exec", "-l", "ts", "--json"], args].concat());
    let mut value: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let fields = value.as_object_mut().expect("an object");
    let id = fields.shift_remove("id");
    assert!(
        id.as_ref().and_then(Value::as_str).is_some_and(|id| id.starts_with("exec_")),
        "{id:?}"
    );
    for ms in ["duration_ms", "cpu_ms"] {
        assert!(fields.shift_remove(ms).is_some_and(|ms| ms.is_f64()), "{ms}");
    }
    assert!(fields.shift_remove("peak_memory_bytes").is_some_and(|bytes| bytes.is_u64()));
    let nothing = json!({
        "exit_code": null, "images": 0, "image_files": [], "limits_met": [],
        "artifacts": {"created": [], "modified": [], "deleted": [], "held_back": [], "conflicts": [], "left_out": 0},
    });
    for (name, expected) in nothing.as_object().expect("an object") {
        assert_eq!(fields.shift_remove(name).as_ref(), Some(expected), "{name}");
    }
    assert_eq!((ran.code, &value, ran.stderr.as_str()), (Some(code), expected, ""), "{args:?}");
}

#[test]
fn json_has_the_value_or_the_error() {
    check_json(
        &["console.log('o'); ({ a: 1 })"],
        0,
        &json!({"ok": true, "outcome": "returned", "output": "o\n", "tool_calls": 0, "value": {"a": 1}}),
    );
    check_json(
        &["console.log('o'); throw new TypeError('x')"],
        1,
        &json!({"ok": false, "outcome": "threw", "output": "o\n", "tool_calls": 0, "error": {
            "code": "RUNTIME_ERROR", "message": "TypeError: x", "line": 1, "column": 29,
            "stack": "at <main> (1:29)",
        }}),
    );
}

/// The code and the output stand beside the message already.
#[test]
fn json_of_a_stopped_run_has_a_plain_message() {
    check_json(
        &["--timeout", "300ms", "console.log('o'); while (true) {}"],
        1,
        &json!({"ok": false, "outcome": "stopped", "output": "o\n", "tool_calls": 0, "error": {
            "code": "TIMEOUT",
            "message": "stopped after 300 ms; do less, or ask for more with --timeout",
        }}),
    );
}
