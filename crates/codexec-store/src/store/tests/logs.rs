//! The log files.

use codexec_types::SessionId;
use serde_json::{Value, json};

use super::*;
use crate::{PackageInstall, PackageTarget, SessionQuery, SessionStart};

/// 2026-02-09T14:30:01.123Z.
pub(crate) const AT: u64 = 1_770_647_401_123;

#[tokio::test]
async fn an_execution_is_a_line_in_its_daily_file() {
    let (store, home) = store().await;
    let id = ExecutionId::from_bits(1);
    let context = RequestOrigin {
        agent_id: Some("annabelle".to_owned()),
        trace_id: Some("tr_abc123".to_owned()),
        chat_id: None,
    };
    let begin = ExecutionStart {
        id: &id,
        admitted: &admitted("6*7"),
        started: at(AT),
        session: None,
        script: Some(("sum", 3)),
        context: &context,
        principal: &local(),
    };
    store.begin(begin).await.unwrap();
    let call = CallStart {
        server: "db",
        tool: "query",
        args: r#"{"sql":"select 1"}"#,
        kept_bytes: 1 << 20,
        after: std::time::Duration::ZERO,
    };
    store.begin_call(&id, 1, &call).await.unwrap();
    let end = CallEnd {
        error: Some(("UPSTREAM_ERROR", "no such table")),
        duration: Duration::from_micros(1_500),
        result_bytes: 17,
    };
    store.finish_call(&id, 1, end).await;
    let changes = FileChanges {
        created: vec![Artifact { path: "a.csv".to_owned(), bytes: 3 }],
        ..FileChanges::default()
    };
    let outcome = Outcome::Returned(Json::parse("42".to_owned()).unwrap());
    let finish = ExecutionEnd { changes: &changes, ..finish(RecordEnding::Outcome(&outcome)) };
    store.finish(&id, finish).await.unwrap();
    store.flush().await.unwrap();

    let lines = lines(&home, "executions-2026-02-09.jsonl");
    assert_eq!(lines, [expected_line(&id)]);
    for (name, mode) in [("logs", 0o700), ("logs/executions-2026-02-09.jsonl", 0o600)] {
        let metadata = fs::metadata(home.path().join(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{name}");
    }
}

fn expected_line(id: &ExecutionId) -> Value {
    json!({
        "type": "execution",
        "execution_id": id.as_str(),
        "language": "typescript",
        "code": "6*7",
        "stdin": null,
        "stdout": "llo\n",
        "stderr": "he",
        "exit_code": 0,
        "timed_out": false,
        "duration_ms": 7,
        "memory_peak_mb": 1.0,
        "sandbox_mode": "process",
        "working_dir": null,
        "artifacts": {"created": ["a.csv"], "modified": [], "deleted": []},
        "guardian": null,
        "context": {"agent_id": "annabelle", "trace_id": "tr_abc123", "chat_id": null},
        "executed_at": "2026-02-09T14:30:01.123Z",
        "status": "success",
        "error_code": null,
        "error_message": null,
        "value": 42,
        "input": null,
        "args": [],
        "script": {"name": "sum", "version": 3},
        "principal": "local", "edge": "stdio", "allowed_tools": [["*"]], "grants": [],
        "tool_calls": [{
            "server": "db",
            "tool": "query",
            "args": {"sql": "select 1"},
            "duration_ms": 1.5,
            "error_code": "UPSTREAM_ERROR",
            "error_message": "no such table",
            "result_bytes": 17,
        }],
        "limits_met": [],
        "sandbox_layers": ["user", "pid", "mount"],
        "cpu_ms": 0,
        "images": 2,
        "artifacts_held_back": [],
        "artifacts_in_conflict": [],
        "artifacts_between_cells": null,
        "artifacts_of_nested_code": null,
        "packages_installed": [],
        "ended_at": "2026-02-09T14:30:01.130Z",
    })
}

#[tokio::test]
async fn a_session_has_its_own_file() {
    let (store, home) = store().await;
    let session = start_session(&store, 7, "data-analysis").await;
    let (target, principal) = (PackageTarget::Session(session.clone()), local());
    for (name, version, ms) in [("pandas", Some("2.2.1"), 5_000), ("nonsense", None, 6_000)] {
        let install = PackageInstall {
            target: &target,
            name,
            version,
            is_ok: version.is_some(),
            principal: &principal,
            at: at(AT + ms),
        };
        store.record_package_install(&install).await.unwrap();
    }
    let id = ExecutionId::from_bits(1);
    begin_in(&store, &id, &session, at(AT + 10_000)).await;
    store.finish(&id, finish(RecordEnding::Outcome(&Outcome::Stopped(Limit::Wall)))).await.unwrap();
    let ended = store.end_session(&session, "idle_timeout", at(AT + 900_000), 1).await.unwrap();
    assert!(ended);
    assert!(!store.end_session(&session, "manual", at(AT), 1).await.unwrap(), "it ends once");
    store.flush().await.unwrap();

    let lines = lines(&home, &format!("session-{session}.jsonl"));
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        ["session_start", "package_install", "package_install", "execution", "session_end"]
    );
    let session = session.as_str();
    assert_eq!(
        lines[0],
        json!({"type": "session_start", "session_id": session, "language": "python",
            "name": "data-analysis", "pid": 12345, "agent_id": "annabelle",
            "started_at": "2026-02-09T14:30:01.123Z", "working_dir": "/data"})
    );
    assert_eq!(
        lines[1],
        json!({"type": "package_install", "session_id": session, "package": "pandas",
            "version": "2.2.1", "success": true, "at": "2026-02-09T14:30:06.123Z"})
    );
    let execution = &lines[3];
    assert_eq!(execution["session_id"], session);
    assert_eq!((&execution["exit_code"], &execution["timed_out"]), (&Value::Null, &json!(true)));
    assert_eq!(execution["at"], "2026-02-09T14:30:11.123Z");
    assert_eq!(execution["packages_installed"], json!(["pandas"]));
    assert_eq!(
        lines[4],
        json!({"type": "session_end", "session_id": session, "reason": "idle_timeout",
            "total_duration_ms": 900_000, "executions_count": 1, "at": "2026-02-09T14:45:01.123Z"})
    );
    let stored = store.list_sessions(SessionQuery { only: None, limit: 10 }, &ALL).await.unwrap();
    assert_eq!((stored.len(), stored[0].reason.as_deref()), (1, Some("idle_timeout")));
    assert!(!home.path().join("logs/executions-2026-02-09.jsonl").exists());
}

#[tokio::test]
async fn the_sessions_and_entries_of_a_dead_server_are_taken_over() {
    let (dead, home) = store().await;
    let session = start_session(&dead, 7, "x").await;
    let id = ExecutionId::from_bits(1);
    begin_in(&dead, &id, &session, at(AT)).await;
    dead.flush().await.unwrap();
    drop(dead);
    let store = Store::open(&home.path().join("codexec.db"), Durability::Process).await.unwrap();
    while store.interrupt_leftovers(at(AT + 60_000)).await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    store.flush().await.unwrap();
    let lines = lines(&home, &format!("session-{session}.jsonl"));
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["session_start", "execution", "session_end"]);
    let find = |kind: &str| lines.iter().find(|line| line["type"] == kind).unwrap();
    assert_eq!(find("execution")["status"], "interrupted");
    assert_eq!(find("execution")["error_code"], "interrupted");
    let end = find("session_end");
    assert_eq!((&end["reason"], &end["executions_count"]), (&json!("server_restart"), &json!(1)));
}

#[tokio::test]
async fn a_log_that_cannot_be_written_is_retried() {
    let (store, home) = store().await;
    let logs = home.path().join("logs");
    fs::write(&logs, "in the way").unwrap();
    let id = ExecutionId::from_bits(1);
    begin(&store, &id, "1", at(AT)).await.unwrap();
    store.finish(&id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await.unwrap();
    assert_eq!(store.flush().await.unwrap_err().code(), "store_write");
    fs::remove_file(&logs).unwrap();
    store.flush().await.unwrap();
    assert_eq!(lines(&home, "executions-2026-02-09.jsonl").len(), 1);
}

pub(crate) async fn start_session(store: &Store, bits: u128, name: &str) -> SessionId {
    let id = SessionId::from_bits(bits);
    let context =
        RequestOrigin { agent_id: Some("annabelle".to_owned()), ..RequestOrigin::default() };
    let start = SessionStart {
        id: &id,
        principal: &local(),
        language: Language::Python,
        name: Some(name),
        pid: Some(12345),
        working_dir: Some(Path::new("/data")),
        context: &context,
        at: at(AT),
    };
    store.begin_session(&start).await.unwrap();
    id
}

pub(crate) async fn begin_in(
    store: &Store,
    id: &ExecutionId,
    session: &SessionId,
    started: SystemTime,
) {
    let begin = ExecutionStart {
        id,
        admitted: &admitted("1"),
        started,
        session: Some(session),
        script: None,
        context: &RequestOrigin::default(),
        principal: &local(),
    };
    store.begin(begin).await.unwrap();
}

pub(crate) fn lines(home: &TempDir, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(home.path().join("logs").join(name)).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
