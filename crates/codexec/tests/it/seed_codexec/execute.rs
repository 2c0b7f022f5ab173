use serde_json::{Value, json};

use super::{Seed, like};

/// What a run may tell beside what was promised.
const MORE: &[&str] = &["result", "error_code", "limits_met"];

#[test]
fn code_that_succeeds() {
    let seed = &mut Seed::start();
    let code = "rows = [1, 2, 3]\nopen('data_summary.csv', 'w').write('count,3')\nprint('count', len(rows))";
    let ran = seed
        .call("execute_code", &json!({"language": "python", "code": code, "timeout_ms": 30_000}));
    let example = json!({
        "success": true,
        "execution_id": "exec_a1b2c3",
        "language": "python",
        "stdout": "count 3\n",
        "stderr": "",
        "exit_code": 0,
        "duration_ms": 1245,
        "truncated": false,
        "artifacts": ["data_summary.csv"],
    });
    like(&ran, &example, MORE);
    for key in ["success", "language", "stdout", "stderr", "exit_code", "truncated", "artifacts"] {
        assert_eq!(ran[key], example[key], "{key}");
    }
    assert!(ran["execution_id"].as_str().expect("an id").starts_with("exec_"));
}

/// The text stays as it was; a file is one more block, and can be read.
#[test]
fn files_that_code_leaves_are_linked() {
    let seed = &mut Seed::start();
    let code = "open('report.csv', 'w').write('x,y')";
    let save = json!({"name": "report", "language": "python", "code": code, "description": "x"});
    seed.done("save_script", &save);
    for (tool, arguments) in [
        ("execute_code", json!({"language": "python", "code": code})),
        ("run_script", json!({"name": "report"})),
    ] {
        let call = json!({"name": tool, "arguments": arguments});
        let reply = seed.client.request("tools/call", &call);
        let content = reply["result"]["content"].as_array().expect("content");
        let [text, link] = content.as_slice() else { panic!("{content:?}") };
        let ran: Value = serde_json::from_str(text["text"].as_str().expect("text")).expect("JSON");
        let id = ran["execution_id"].as_str().expect("an id");
        let uri = format!("codexec://executions/{id}/artifacts/report.csv");
        assert_eq!(
            (&link["type"], &link["name"], &link["uri"]),
            (&json!("resource_link"), &json!("report.csv"), &json!(uri))
        );
        let read = seed.client.request("resources/read", &json!({"uri": uri}));
        assert_eq!(read["result"]["contents"][0]["text"], "x,y", "{tool}: {read}");
    }
}

#[test]
fn code_that_works_in_a_directory_of_the_user() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("data.csv"), "a\n1\n").expect("written");
    let settings = format!("[files]\nallowed = [{:?}]\n", folder.path());
    let seed = &mut Seed::with(&json!({}), &settings);
    let ran = seed.done(
        "execute_code",
        &json!({
            "language": "bash",
            "code": "cat data.csv; echo 2 >> data.csv; echo new > out.csv",
            "working_dir": folder.path(),
        }),
    );
    assert_eq!(ran["stdout"], "a\n1\n");
    assert_eq!(ran["artifacts"], json!(["out.csv", "data.csv"]));
    let log = seed.done("get_execution_log", &json!({"execution_id": ran["execution_id"]}));
    assert_eq!(log["artifacts_created"], json!(["out.csv"]));
    assert_eq!(log["artifacts_modified"], json!(["data.csv"]));
    assert_eq!(log["artifacts_deleted"], json!([]));
}

#[test]
fn code_that_fails() {
    let seed = &mut Seed::start();
    let args = json!({"language": "python", "code": "import no_such_module_at_all"});
    let ran = seed.call("execute_code", &args);
    let example = json!({
        "success": false,
        "execution_id": "exec_d4e5f6",
        "language": "python",
        "stdout": "",
        "stderr": "ModuleNotFoundError: No module named 'pandas'",
        "exit_code": 1,
        "duration_ms": 312,
        "truncated": false,
        "artifacts": [],
    });
    like(&ran, &example, MORE);
    let error = "ModuleNotFoundError: No module named 'no_such_module_at_all'";
    assert!(ran["stderr"].as_str().expect("text").contains(error), "{ran}");
    assert_eq!((&ran["exit_code"], &ran["truncated"]), (&json!(1), &json!(false)));
    let exits = seed.call("execute_code", &json!({"language": "bash", "code": "exit 7"}));
    assert_eq!((&exits["success"], &exits["exit_code"]), (&json!(false), &json!(7)));
}

#[test]
fn code_whose_time_is_up() {
    let seed = &mut Seed::start();
    let code = "print('Processing row 1...')\nprint('Processing row 2...')\nwhile True: pass";
    let args = json!({"language": "python", "code": code, "timeout_ms": 400});
    let ran = seed.call("execute_code", &args);
    let example = json!({
        "success": false,
        "execution_id": "exec_g7h8i9",
        "language": "python",
        "stdout": "Processing row 1...\nProcessing row 2...\n",
        "stderr": "",
        "exit_code": null,
        "duration_ms": 30_000,
        "timed_out": true,
        "truncated": true,
        "artifacts": [],
    });
    like(&ran, &example, MORE);
    for key in ["success", "stdout", "stderr", "exit_code", "timed_out", "truncated"] {
        assert_eq!(ran[key], example[key], "{key}");
    }
}

#[test]
fn long_output_keeps_both_of_its_ends() {
    let seed = &mut Seed::start();
    let code = "print('a' * 4000 + 'b' * 12000 + 'c' * 3999)";
    let ran = seed.done("execute_code", &json!({"language": "python", "code": code}));
    let (head, tail) = ("a".repeat(4_000), "c".repeat(3_999));
    let expected = format!("{head}\n\n[... truncated 12000 characters ...]\n\n{tail}\n");
    assert_eq!(ran["stdout"], expected);
    assert_eq!(ran["truncated"], true);
    let code = "print('a' * 9999)";
    let whole = seed.done("execute_code", &json!({"language": "python", "code": code}));
    assert_eq!(whole["stdout"].as_str().map(str::len), Some(10_000));
    assert_eq!(whole["truncated"], false);
}

/// SIGTERM first, then five seconds to clean up.
#[test]
fn a_program_may_clean_up_when_its_time_is_up() {
    let seed = &mut Seed::start();
    let code = "trap 'echo cleaned; exit 0' TERM; echo ready; sleep 60 & wait";
    let args = json!({"language": "bash", "code": code, "timeout_ms": 2_500});
    let ran = seed.call("execute_code", &args);
    assert_eq!(
        (&ran["stdout"], &ran["timed_out"]),
        (&json!("ready\ncleaned\n"), &json!(true)),
        "{ran}"
    );
    let found = seed.done("search_execution_logs", &json!({"status": "timeout"}));
    let preview = found["results"][0]["error_preview"].as_str().expect("a text");
    assert!(preview.starts_with("TIMEOUT: stopped after "), "{preview}");
    let id = json!({"execution_id": ran["execution_id"]});
    let error = seed.done("get_execution_log", &id)["error"].take();
    assert_eq!(error.as_str(), Some(preview));
}
