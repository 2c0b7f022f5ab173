//! What is written down, for those who keep such a file.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use serde_json::{Value, json};

use super::Seed;
use crate::world::World;

fn audited(world: &World, log: &Path) -> Seed {
    let log = log.to_owned();
    Seed::in_world(world, move |command| {
        command.env("ENABLE_AUDIT_LOG", "true").env("AUDIT_LOG_PATH", log);
    })
}

fn lines(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).expect("a log");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Without what is different every time, which has to be there.
fn without_varying_fields(line: &Value) -> Value {
    let mut line = line.as_object().expect("an object").clone();
    assert!(line.remove("timestamp").is_some_and(|at| at.as_str().is_some_and(is_moment)));
    assert!(line.remove("executionTimeMs").is_some_and(|ms| ms.is_u64()));
    assert!(line.remove("executionId").is_some_and(|id| id.is_string()));
    if let Some(memory) = line.remove("memoryUsage") {
        assert!(memory.as_u64().is_some_and(|bytes| bytes > 0), "{memory}");
    }
    Value::Object(line)
}

fn is_moment(text: &str) -> bool {
    text.len() == "2026-02-09T14:30:01.123Z".len() && text.ends_with('Z')
}

#[test]
fn executions_and_discoveries_are_a_line_each() {
    let Some(world) = World::find() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let log = home.path().join("audit/log.jsonl");
    let seed = &mut audited(&world, &log);
    let before = lines(&log).len();
    let code = "await discoverMCPTools({ search: ['echo'] });
        await callMCPTool('mcp__everything__echo', { message: 'a secret of mine' });
        try { await searchTools('a;b'); } catch {}
        throw new Error('the end');";
    let allowed = json!(["mcp__everything__echo"]);
    seed.failed("executeTypescript", &json!({"code": code, "allowedTools": allowed}));
    let all = lines(&log);
    let written: Vec<Value> = all[before..].iter().map(without_varying_fields).collect();
    let discovery = |function: &str, term: &str, count: u32, error: Option<&str>| {
        json!({
            "action": "discovery", "function": function, "searchTerms": [term],
            "resultsCount": count, "success": error.is_none(), "error": error,
            "clientId": "local",
        })
    };
    let invalid = "Invalid characters in search query: ';'; allowed are letters and digits of \
                   ASCII, spaces, `_` and `-`";
    assert_eq!(written[0], discovery("discoverMCPTools", "echo", 1, None));
    assert_eq!(written[1], discovery("searchTools", "a;b", 0, Some(invalid)));
    let mut execution = written[2].clone();
    let hash = execution["codeHash"].take();
    assert_eq!(hash.as_str().map(str::len), Some(64), "{hash}");
    let error = execution["error"].take();
    assert!(error.as_str().is_some_and(|text| text.starts_with("the end\n")), "{error}");
    assert_eq!(
        execution,
        json!({
            "action": "execution", "executor": "typescript", "codeHash": null,
            "codeLength": code.chars().count(), "allowedTools": allowed, "toolsCalled": allowed,
            "success": false, "error": null, "clientId": "local",
        })
    );
    assert_eq!(written.len(), 3);
    assert_eq!(log.metadata().expect("a file").mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&log).expect("text");
    assert!(!text.contains("a secret of mine"), "neither code nor arguments are in it");
}

#[test]
fn nothing_fails_where_it_cannot_be_written() {
    let Some(world) = World::find() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let (target, link) = (home.path().join("target"), home.path().join("log"));
    std::fs::write(&target, "theirs").expect("written");
    symlink(&target, &link).expect("a link");
    let seed = &mut audited(&world, &link);
    assert_eq!(seed.done("executePython", &json!({"code": "1 + 1"})), "2");
    assert_eq!(std::fs::read_to_string(&target).expect("text"), "theirs");
}

/// Our own records have both, with or without that file.
#[test]
fn the_record_of_an_execution_has_its_discoveries() {
    let Some(world) = World::find() else { return };
    let seed = &mut Seed::with(&world.servers, |command| {
        command.args(["--toolset", "codexec"]);
    });
    let code = "await Promise.all([callMCPTool('mcp__time__get_current_time', {timezone: 'UTC'})]);
        await getToolSchema('mcp__time__convert_time');";
    let args = json!({"code": code, "allowedTools": ["mcp__time__*"], "timeoutMs": 60_000});
    seed.done("executeTypescript", &args);
    let mut call = |tool: &str, args: Value| -> Value {
        let said = seed.client.call(tool, &args);
        serde_json::from_str(&said.text).expect("JSON")
    };
    let found = call("search_execution_logs", json!({}));
    let id = found["results"][0]["execution_id"].clone();
    let log = call("get_execution_log", json!({"execution_id": id}));
    let calls = log["tool_calls"].as_array().expect("calls").iter();
    let names: Vec<Value> = calls.map(|call| json!([call["server"], call["tool"]])).collect();
    assert_eq!(
        json!(names),
        json!([["", "mcp__time__get_current_time"], ["codexec", "getToolSchema"]])
    );
}
