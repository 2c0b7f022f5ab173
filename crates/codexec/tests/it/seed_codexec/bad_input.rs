use serde_json::json;

use super::Seed;

#[test]
fn a_session_that_is_not_there_is_said_so() {
    let seed = &mut Seed::start();
    let nobodys = format!("sess_{}", "0".repeat(32));
    for id in [nobodys.as_str(), "sess_", "x", "", "../../etc/passwd", "sess_\0"] {
        for (tool, args) in [
            ("send_to_session", json!({"session_id": id, "code": "1"})),
            ("close_session", json!({"session_id": id})),
        ] {
            let (code, sentence) = seed.refused(tool, &args);
            assert_eq!(code, "SESSION_NOT_FOUND", "{id:?}: {sentence}");
            assert!(sentence.contains("list_sessions"), "{sentence}");
        }
    }
    let session = seed.session("javascript");
    seed.done("close_session", &json!({"session_id": session}));
    let (code, sentence) = seed.refused("close_session", &json!({"session_id": session}));
    assert_eq!(code, "SESSION_ENDED", "{sentence}");
}

#[test]
fn names_that_are_none_are_refused_and_nothing_is_written() {
    let seed = &mut Seed::start();
    let scripts = seed.client.home.path().join("state/scripts");
    let long = "a".repeat(300);
    for name in
        ["../evil", "..", ".", "", "a/b", "/etc/passwd", "a\0b", "...", long.as_str(), "a\nb"]
    {
        let draft = json!({"name": name, "description": "d", "language": "bash", "code": "true"});
        let (code, sentence) = seed.refused("save_script", &draft);
        assert_eq!(code, "INVALID_SCRIPT_NAME", "{name:?}: {sentence}");
        for tool in ["get_script", "run_script", "delete_script"] {
            let (code, sentence) = seed.refused(tool, &json!({"name": name}));
            let is_fine = code == "INVALID_SCRIPT_NAME" || code == "SCRIPT_NOT_FOUND";
            assert!(is_fine, "{tool} {name:?}: {code} {sentence}");
        }
    }
    let left = std::fs::read_dir(&scripts).into_iter().flatten().flatten();
    let left: Vec<_> =
        left.map(|entry| entry.file_name()).filter(|name| name != "index.json").collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with('.')), "{left:?}");
}

#[test]
fn queries_are_words_and_not_a_language() {
    let seed = &mut Seed::start();
    seed.done(
        "execute_code",
        &json!({"language": "bash", "code": "echo 'pears AND apples' # a-b"}),
    );
    for query in [
        "pears AND NOT",
        "\"",
        "a* OR b",
        "NEAR(a b)",
        "code:x",
        "(",
        "^",
        "-",
        "a-b",
        "'; DROP TABLE x",
        "%",
        "\\",
        "{}",
        "+",
        "pears\0",
        "",
    ] {
        let found = seed.done("search_execution_logs", &json!({"query": query}));
        assert!(found["total_count"].is_u64(), "{query:?}: {found}");
        seed.done("search_scripts", &json!({"query": query}));
    }
    for query in ["pears AND apples", "a-b"] {
        let found = seed.done("search_execution_logs", &json!({"query": query}));
        assert_eq!(found["total_count"], 1, "{query:?}: {found}");
    }
}

#[test]
fn fields_are_named_where_they_are_wrong() {
    let seed = &mut Seed::start();
    for (tool, args, field) in [
        ("start_session", json!({"language": "cobol"}), "language:"),
        ("start_session", json!({"language": "python", "name": "a/b"}), "name:"),
        ("start_session", json!({"language": "python", "colour": 1}), "colour:"),
        ("send_to_session", json!({"session_id": 5, "code": "1"}), "session_id:"),
        ("send_to_session", json!({"session_id": "x"}), "code:"),
        ("search_execution_logs", json!({"since": "yesterday"}), "since:"),
        ("search_execution_logs", json!({"limit": 0}), "limit:"),
        ("search_execution_logs", json!({"status": "odd"}), "status:"),
        ("run_script", json!({"name": "x", "args": [1]}), "args:"),
        ("run_script", json!({"name": "x", "version": 0}), "version:"),
        ("execute_code", json!({"language": "python"}), "code:"),
        (
            "execute_code",
            json!({"language": "python", "code": "1", "script": "x"}),
            "code, script:",
        ),
    ] {
        let (code, sentence) = seed.refused(tool, &args);
        assert_eq!(code, "INVALID_ARGS", "{tool} {args}: {sentence}");
        assert!(sentence.starts_with(field), "{tool} {args}: {sentence}");
    }
    let (code, _) = seed.refused("get_execution_log", &json!({"execution_id": "exec_nope"}));
    assert_eq!(code, "EXECUTION_NOT_FOUND");
}
