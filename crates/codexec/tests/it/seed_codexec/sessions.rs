use serde_json::{Value, json};

use super::{Seed, configure, like};
use crate::attacks::recorder::Recorders;
use crate::support::PATIENCE;

fn sent() -> Value {
    json!({
        "success": true,
        "execution_id": "exec_j1k2l3",
        "session_id": "sess_x1y2z3",
        "stdout": "",
        "stderr": "",
        "duration_ms": 89,
        "truncated": false,
        "artifacts": [],
    })
}

#[test]
fn a_session_from_its_start_to_its_end() {
    let seed = &mut Seed::start();
    let started =
        seed.done("start_session", &json!({"language": "python", "name": "data-analysis"}));
    let example = json!({
        "success": true,
        "session_id": "sess_x1y2z3",
        "language": "python",
        "name": "data-analysis",
        "pid": 12_345,
        "started_at": "2026-02-09T14:30:00Z",
    });
    like(&started, &example, &[]);
    let id = started["session_id"].as_str().expect("an id").to_owned();
    assert_eq!(id.len(), "sess_".len() + 32);
    for (code, stdout) in [("import json\nx = {'A': 42.3}", ""), ("x['B'] = 18.7", "")] {
        let answer = seed.send(&id, code);
        like(&answer, &sent(), &[]);
        assert_eq!(answer["stdout"], stdout);
    }
    assert_eq!(seed.cell(&id, "print(json.dumps(x))\nlen(x)"), "{\"A\": 42.3, \"B\": 18.7}\n2");
    let listed = seed.done("list_sessions", &json!({}));
    let example = json!({
        "sessions": [{
            "session_id": "sess_x1y2z3",
            "language": "python",
            "name": "data-analysis",
            "started_at": "2026-02-09T14:30:00Z",
            "last_activity_at": "2026-02-09T14:38:00Z",
            "executions_count": 8,
            "pid": 12_345,
            "memory_mb": 87.4,
            "packages_installed": [],
        }],
    });
    like(&listed, &example, &[]);
    let session = &listed["sessions"][0];
    assert_eq!((&session["session_id"], &session["executions_count"]), (&json!(id), &json!(3)));
    assert!(session["memory_mb"].as_f64().is_some_and(|mb| mb > 0.0), "{session}");
    let closed = seed.done("close_session", &json!({"session_id": id}));
    let example = json!({
        "success": true, "session_id": id, "duration_total_ms": 542_000, "executions_count": 3,
    });
    like(&closed, &example, &[]);
    assert_eq!(closed["executions_count"], 3);
    assert_eq!(seed.done("list_sessions", &json!({})), json!({"sessions": []}));
}

/// State of every kind is kept; each line is a cell and what it prints.
#[track_caller]
fn keeps(language: &str, cells: &[(&str, &str)]) {
    let seed = &mut Seed::start();
    let session = seed.session(language);
    for (code, expected) in cells {
        assert_eq!(seed.cell(&session, code).trim_end(), *expected, "{code}");
    }
    let failed = seed.send(&session, "no such thing (");
    assert_eq!(failed["success"], false, "{failed}");
    let (code, expected) = cells.last().expect("cells");
    assert_eq!(seed.cell(&session, code).trim_end(), *expected, "after a failure: {code}");
    seed.done("close_session", &json!({"session_id": session}));
    let (code, sentence) =
        seed.refused("send_to_session", &json!({"session_id": session, "code": "1"}));
    assert_eq!(code, "SESSION_ENDED");
    assert!(sentence.contains("has ended (manual)"), "{sentence}");
}

#[test]
fn python_keeps_its_state() {
    keeps(
        "python",
        &[
            ("import math\nx = 2", ""),
            ("def f(y):\n    return math.floor(x * y)", ""),
            ("class A:\n    n = 3", ""),
            ("f(A.n + .5)", "7"),
        ],
    );
}

#[test]
fn javascript_keeps_its_state() {
    keeps(
        "javascript",
        &[
            ("const x = 2; let y = 3", ""),
            ("class A { f() { return x * y } }", ""),
            ("y = 4", "4"),
            ("new A().f()", "8"),
        ],
    );
}

#[test]
fn typescript_keeps_its_state() {
    keeps("typescript", &[("const x: number = 2", ""), ("x + (1 as number)", "3")]);
}

#[test]
fn node_keeps_its_state() {
    keeps(
        "node",
        &[
            ("import os from 'node:os'; const x = 2", ""),
            ("const f = (y) => x * y", ""),
            ("typeof os.platform() + f(4)", "string8"),
        ],
    );
}

#[test]
fn bash_keeps_its_state() {
    keeps(
        "bash",
        &[
            ("x=2; mkdir -p sub; cd sub", ""),
            ("f() { echo \"$x in $(basename \"$PWD\")\"; }", ""),
            ("f", "2 in sub"),
        ],
    );
}

#[test]
fn code_that_runs_too_long_is_stopped_and_the_session_goes_on_or_says_why_not() {
    let loops = [
        ("python", "x = 7", "while True: pass", "print(x)"),
        ("javascript", "const x = 7", "while (true) {}", "x"),
        ("node", "const x = 7", "while (true) {}", "x"),
        ("bash", "x=7", "while true; do :; done", "echo $x"),
    ];
    for (language, first, forever, last) in loops {
        let seed = &mut Seed::start();
        let session = seed.session(language);
        seed.cell(&session, first);
        let args = json!({"session_id": session, "code": forever, "timeout_ms": 500});
        let stopped = seed.call("send_to_session", &args);
        assert_eq!(stopped["timed_out"], true, "{language}: {stopped}");
        assert_eq!(stopped["error_code"], "TIMEOUT", "{language}: {stopped}");
        match stopped["session_ended"].as_str() {
            None => assert_eq!(seed.cell(&session, last).trim_end(), "7", "{language}"),
            Some(reason) => {
                let args = json!({"session_id": session, "code": last});
                let (code, sentence) = seed.refused("send_to_session", &args);
                assert_eq!(code, "SESSION_ENDED", "{language}");
                assert!(sentence.contains(reason), "{language}: {sentence}");
            }
        }
    }
}

#[test]
fn two_sessions_see_nothing_of_each_other() {
    let seed = &mut Seed::start();
    for (language, write, read) in [
        (
            "python",
            "x = 1\nopen('mine', 'w').write('1')",
            "import os\n['x' in globals(), os.listdir()]",
        ),
        ("javascript", "globalThis.x = 1", "['x' in globalThis, []]"),
    ] {
        let (one, two) = (seed.session(language), seed.session(language));
        seed.cell(&one, write);
        let seen: Value = serde_json::from_str(&seed.cell(&two, read)).expect("JSON");
        assert_eq!(seen, json!([false, []]), "{language}");
        let listed = seed.done("list_sessions", &json!({}));
        assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(2));
        for session in [one, two] {
            seed.done("close_session", &json!({"session_id": session}));
        }
    }
}

/// The second is done while the first still runs, so they do not wait for each other.
#[test]
fn sessions_run_side_by_side() {
    let seed = &mut Seed::with(&json!({}), "");
    let mut sent = Vec::new();
    for code in ["sleep 5; echo first", "echo second"] {
        let start = json!({"language": "bash"});
        let session = seed.done("start_session", &start)["session_id"].clone();
        let args = json!({"session_id": session, "code": code, "timeout_ms": 30_000});
        sent.push(seed.client.send_call("send_to_session", &args));
    }
    assert_eq!(seed.wait(sent[1])["stdout"], "second\n");
    let is_first = |answer: &Value| answer["id"] == sent[0];
    assert!(!seed.client.others.iter().any(is_first), "the first was done before");
    assert_eq!(seed.wait(sent[0])["stdout"], "first\n");
}

#[test]
fn no_more_than_allowed_are_open_and_an_idle_one_ends() {
    let seed = &mut Seed::with(&json!({}), "[sessions]\nmax = 1\nidle-s = 1\n");
    let session = seed.session("javascript");
    let (code, sentence) = seed.refused("start_session", &json!({"language": "javascript"}));
    assert_eq!(code, "TOO_MANY_SESSIONS");
    assert!(sentence.contains("1 sessions are open"), "{sentence}");
    // Its place is free once it has ended.
    let begun = std::time::Instant::now();
    while seed.call("start_session", &json!({"language": "javascript"}))["success"] == false {
        assert!(begun.elapsed() < PATIENCE, "it does not end");
    }
    let (code, sentence) =
        seed.refused("send_to_session", &json!({"session_id": session, "code": "1"}));
    assert_eq!(code, "SESSION_ENDED");
    assert!(sentence.contains("idle_timeout"), "{sentence}");
}

#[test]
fn a_restart_ends_them_with_a_reason() {
    let mut seed = Seed::start();
    let (stopped, killed) = (seed.session("javascript"), seed.session("python"));
    seed.cell(&killed, "x = 1");
    seed.client.child.kill().expect("killed");
    seed.client.child.wait().expect("waited for");
    seed.client.restart(|command| configure(command, ""));
    for session in [&stopped, &killed] {
        let args = json!({"session_id": session, "code": "1"});
        let (code, _) = seed.refused("send_to_session", &args);
        assert!(code == "SESSION_NOT_FOUND" || code == "SESSION_ENDED", "{code}");
    }
    let other = seed.session("javascript");
    seed.client.restart(|command| configure(command, ""));
    let state = seed.client.home.path().join("state");
    // Whatever opens the store takes over what the dead have left.
    seed.done("search_execution_logs", &json!({}));
    let ended = crate::attacks::bench::rows(&state, "select id, reason from sessions order by seq");
    let reason = |id: &str| ended.iter().find(|row| row[0] == id).map(|row| row[1].clone());
    assert_eq!(reason(&stopped), Some(json!("server_restart")));
    assert_eq!(reason(&killed), Some(json!("server_restart")));
    assert_eq!(reason(&other), Some(json!("server_stopped")));
}

/// A snapshot is made again from its cells, and nobody outside hears of it a second time.
#[test]
fn a_snapshot_is_restored_with_the_answers_of_then() {
    let folder = tempfile::tempdir().expect("a directory");
    let recorders = Recorders::new(folder.path());
    let servers = json!({"fake": recorders.entry("fake", &json!({}))});
    for (language, call, bad, last, snapshot) in [
        (
            "python",
            "answer = await tools.fake.echo(a=1)",
            "broken = 1 / 0",
            "answer",
            "await sessions.snapshot('kept')",
        ),
        (
            "javascript",
            "const answer = await tools.fake.echo({a: 1})",
            "throw 1",
            "answer",
            "await sessions.snapshot('kept')",
        ),
    ] {
        let seed = &mut Seed::with(&servers, "");
        let session = seed.session(language);
        let before = recorders.calls("fake", Some("echo")).len();
        seed.cell(&session, call);
        seed.send(&session, bad);
        let answer = seed.cell(&session, last);
        let kept: Value = serde_json::from_str(&seed.cell(&session, snapshot)).expect("JSON");
        assert_eq!(kept, json!({"success": true, "name": "kept", "cells": 2}), "{language}");
        seed.done("close_session", &json!({"session_id": session}));
        let restored = seed.done(
            "execute_code",
            &json!({
                "language": language, "code": "await sessions.restore('kept')",
                "allowed_tools": ["*", "codexec.sessions.keep"],
            }),
        );
        assert_eq!(restored["result"]["cells"], 2, "{language}: {restored}");
        let id = restored["result"]["session_id"].as_str().expect("an id").to_owned();
        assert_eq!(seed.cell(&id, last), answer, "{language}");
        assert_eq!(recorders.calls("fake", Some("echo")).len(), before + 1, "{language}");
    }
}
