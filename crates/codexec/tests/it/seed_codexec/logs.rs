use std::path::Path;

use serde_json::{Value, json};

use super::{Seed, like};
use crate::attacks::host::within;
use crate::support::PATIENCE;

#[test]
fn past_executions_are_found_and_read() {
    let seed = &mut Seed::start();
    let failing = "import no_such_pandas\nframe = 1";
    seed.call("execute_code", &json!({"language": "python", "code": failing}));
    seed.done("execute_code", &json!({"language": "python", "code": "print('pears')"}));
    let query = json!({
        "language": "python", "status": "failed", "query": "pandas", "since": "2026-02-01",
        "limit": 20,
    });
    let found = seed.done("search_execution_logs", &query);
    let example = json!({
        "results": [{
            "execution_id": "exec_d4e5f6",
            "session_id": null,
            "language": "python",
            "code_preview": "import pandas as pd\ndf = pd.read_csv...",
            "status": "failed",
            "exit_code": 1,
            "error_preview": "ModuleNotFoundError: No module named 'pandas'",
            "duration_ms": 312,
            "executed_at": "2026-02-05T10:15:00Z",
        }],
        "total_count": 3,
    });
    like(&found, &example, &[]);
    assert_eq!(
        (&found["total_count"], &found["results"][0]["code_preview"]),
        (&json!(1), &json!(failing))
    );
    let words = json!({"query": "pears"});
    assert_eq!(seed.done("search_execution_logs", &words)["total_count"], 1);

    let id = found["results"][0]["execution_id"].clone();
    let log = seed.done("get_execution_log", &json!({"execution_id": id}));
    let example = json!({
        "execution_id": "exec_a1b2c3",
        "session_id": null,
        "language": "python",
        "code": "import pandas as pd\n...",
        "stdout": "...",
        "stderr": "",
        "exit_code": 0,
        "duration_ms": 1245,
        "packages_installed": [],
        "artifacts_created": [],
        "artifacts_modified": [],
        "artifacts_deleted": [],
        "sandbox_mode": "subprocess",
        "guardian_pre_scan": null,
        "guardian_post_scan": null,
        "agent_id": null,
        "trace_id": null,
        "executed_at": "2026-02-09T14:30:01Z",
    });
    let more = [
        "status",
        "error_code",
        "error",
        "sandbox_layers",
        "memory_peak_mb",
        "working_dir",
        "allowed_tools",
    ];
    like(&log, &example, &more);
    assert_eq!((&log["code"], &log["exit_code"]), (&json!(failing), &json!(1)));
}

#[test]
fn whoever_asks_is_written_down() {
    let seed = &mut Seed::start();
    let meta =
        json!({"agent_id": "annabelle", "trace_id": "tr_abc123", "chat_id": "telegram:12345"});
    let call = json!({
        "name": "execute_code", "arguments": {"language": "bash", "code": "true"}, "_meta": meta,
    });
    let reply = seed.client.request("tools/call", &call);
    let text = reply["result"]["content"][0]["text"].as_str().expect("text");
    let ran: Value = serde_json::from_str(text).expect("JSON");
    let log = seed.done("get_execution_log", &json!({"execution_id": ran["execution_id"]}));
    assert_eq!(
        json!({
            "agent_id": log["agent_id"], "trace_id": log["trace_id"], "chat_id": log["chat_id"],
        }),
        meta
    );
    let entry = &entries(&seed.client.home.path().join("state/logs"), "executions-", 1)[0];
    assert_eq!(entry["context"], meta);
}

/// The lines of the one file whose name begins so, once there are that many.
fn entries(folder: &Path, prefix: &str, count: usize) -> Vec<Value> {
    let mut text = String::new();
    let has_them = || {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let is_it = |name: &str| name.starts_with(prefix) && name.ends_with(".jsonl");
        let file = files
            .map(|file| file.path())
            .find(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_it));
        text =
            file.map(|path| std::fs::read_to_string(path).expect("readable")).unwrap_or_default();
        text.lines().count() >= count && text.ends_with('\n')
    };
    assert!(within(PATIENCE, has_them), "{prefix} has too few lines: {text}");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

#[test]
fn an_execution_is_a_line_of_its_day() {
    let seed = &mut Seed::start();
    let code = "open('data_summary.csv', 'w').write('x')\nprint('out')";
    let ran = seed.done("execute_code", &json!({"language": "python", "code": code}));
    let entry = &entries(&seed.client.home.path().join("state/logs"), "executions-", 1)[0];
    let example = json!({
        "type": "execution",
        "execution_id": "exec_a1b2c3",
        "language": "python",
        "code": "import pandas as pd",
        "stdin": null,
        "stdout": "col1",
        "stderr": "",
        "exit_code": 0,
        "timed_out": false,
        "duration_ms": 1245,
        "memory_peak_mb": 45.2,
        "sandbox_mode": "subprocess",
        "working_dir": null,
        "artifacts": {"created": ["data_summary.csv"], "modified": [], "deleted": []},
        "guardian": null,
        "context": {"agent_id": null, "trace_id": null, "chat_id": null},
        "executed_at": "2026-02-09T14:30:01.123Z",
    });
    let theirs: Vec<&String> = example.as_object().expect("an object").keys().collect();
    let ours: Vec<&String> = entry.as_object().expect("an object").keys().collect();
    assert_eq!(ours[..theirs.len()], theirs, "{entry}");
    for key in ["type", "stdin", "stderr", "exit_code", "timed_out", "artifacts", "context"] {
        assert_eq!(entry[key], example[key], "{key}");
    }
    assert_eq!((&entry["execution_id"], &entry["stdout"]), (&ran["execution_id"], &json!("out\n")));
}

#[test]
fn a_session_has_a_file_of_its_own() {
    let seed = &mut Seed::start();
    let started =
        seed.done("start_session", &json!({"language": "python", "name": "data-analysis"}));
    let session = started["session_id"].as_str().expect("an id").to_owned();
    for code in ["x = 1", "print(x)"] {
        seed.cell(&session, code);
    }
    seed.done("close_session", &json!({"session_id": session}));
    let folder = seed.client.home.path().join("state/logs");
    let lines = entries(&folder, &format!("session-{session}"), 4);
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["type"]).collect();
    assert_eq!(kinds, ["session_start", "execution", "execution", "session_end"]);
    let examples = [
        json!({
            "type": "session_start", "session_id": "s", "language": "python",
            "name": "data-analysis", "pid": 12_345, "agent_id": null, "started_at": "2026",
        }),
        json!({
            "type": "execution", "execution_id": "e", "session_id": "s", "code": "c", "stdout": "",
            "stderr": "", "exit_code": 0, "duration_ms": 234, "at": "2026",
        }),
        json!({
            "type": "session_end", "session_id": "s", "reason": "idle_timeout",
            "total_duration_ms": 900_000, "executions_count": 3, "at": "2026",
        }),
    ];
    for (line, example) in [(&lines[0], 0), (&lines[1], 1), (&lines[2], 1), (&lines[3], 2)] {
        let keys = line.as_object().expect("an object").keys();
        like(line, &examples[example], &keys.map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!((&lines[2]["code"], &lines[2]["stdout"]), (&json!("print(x)"), &json!("1\n")));
    assert_eq!((&lines[3]["reason"], &lines[3]["executions_count"]), (&json!("manual"), &json!(2)));
}

#[test]
fn executions_are_found_by_session_and_by_pages() {
    let seed = &mut Seed::start();
    let session = seed.session("javascript");
    for number in 0..3 {
        seed.cell(&session, &format!("{number}"));
    }
    seed.done("execute_code", &json!({"language": "javascript", "code": "9"}));
    let page = |offset: u32| json!({"session_id": session, "limit": 2, "offset": offset});
    let first = seed.done("search_execution_logs", &page(0));
    let second = seed.done("search_execution_logs", &page(2));
    let codes = |page: &Value| -> Vec<String> {
        let results = page["results"].as_array().expect("a list").iter();
        results.map(|one| one["code_preview"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(
        (codes(&first), codes(&second)),
        (vec!["2".into(), "1".into()], vec!["0".to_owned()])
    );
    assert_eq!((&first["total_count"], &second["total_count"]), (&json!(3), &json!(3)));
}
