//! What is written down, for those who keep such a file.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Seed;
use crate::world::World;

fn audited(world: &World, log: &Path) -> Seed {
    let log = log.to_owned();
    Seed::in_world(world, move |command| {
        command.env("ENABLE_AUDIT_LOG", "true").env("AUDIT_LOG_PATH", log);
    })
}

/// All lines of the daily files, in order. Midnight may pass.
fn text(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("one").path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    for file in &files {
        let name = file.file_name().expect("a name").to_string_lossy();
        let day = name.strip_prefix("audit-").and_then(|name| name.strip_suffix(".jsonl"));
        assert!(day.is_some_and(|day| day.len() == "2026-02-09".len()), "{name}");
        assert_eq!(file.metadata().expect("a file").mode() & 0o777, 0o600);
    }
    files.iter().map(|file| std::fs::read_to_string(file).expect("text")).collect()
}

fn lines(folder: &Path) -> Vec<Value> {
    text(folder).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
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
fn executions_discoveries_and_calls_are_a_line_each() {
    let Some(world) = World::find() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let folder = home.path().join("audit");
    let seed = &mut audited(&world, &folder.join("log.jsonl"));
    let before = lines(&folder).len();
    let code = "await discoverMCPTools({ search: ['echo'] });
        await callMCPTool('mcp__everything__echo', { message: 'a secret of mine' });
        try { await tools.time.get_current_time({}); } catch {}
        try { await searchTools('a;b'); } catch {}
        throw new Error('the end');";
    let allowed = json!(["mcp__everything__echo"]);
    seed.failed("executeTypescript", &json!({"code": code, "allowedTools": allowed}));
    let all = lines(&folder);
    let written: Vec<Value> = all[before..].iter().map(without_varying_fields).collect();
    let discovery = |function: &str, term: &str, count: u32, error: Option<&str>| {
        json!({
            "action": "discovery", "function": function, "searchTerms": [term], "count": count,
            "success": error.is_none(), "error": error, "clientId": "local",
        })
    };
    let call = |tool: &str, error: Option<&str>| {
        json!({
            "action": "call", "toolName": tool, "success": error.is_none(), "error": error,
            "clientId": "local",
        })
    };
    let invalid = "Invalid characters in search query: ';'; allowed are letters and digits of \
                   ASCII, spaces, `_` and `-`";
    let mut execution = written[4].clone();
    let hash = execution["codeHash"].take();
    assert_eq!(hash.as_str().map(str::len), Some(64), "{hash}");
    let expected = json!({
        "action": "execution", "executor": "typescript", "codeHash": null,
        "codeLength": code.chars().count(), "allowedTools": allowed, "toolsCalled": allowed,
        "success": false, "error": "RUNTIME_ERROR", "clientId": "local",
    });
    assert_eq!(written[0], discovery("discoverMCPTools", "echo", 1, None));
    assert_eq!(written[1], call("mcp__everything__echo", None));
    assert_eq!(written[2], call("mcp__time__get_current_time", Some("SERVER_NOT_ALLOWED")));
    assert_eq!(written[3], discovery("searchTools", "a;b", 0, Some(invalid)));
    assert_eq!(execution, expected);
    assert_eq!(written.len(), 5);
    // Tracebacks and syntax errors quote the source text.
    let python = "marker = 1\nraise ValueError(marker)  # marker";
    seed.failed("executePython", &json!({"code": python}));
    seed.failed("executePython", &json!({"code": "marker marker"}));
    for source in ["a secret of mine", "the end", "marker"] {
        assert!(!text(&folder).contains(source), "{source} is in it");
    }
}

#[test]
fn nothing_fails_where_it_cannot_be_written() {
    let Some(world) = World::find() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let (target, folder) = (home.path().join("target"), home.path().join("folder"));
    std::fs::write(&target, "theirs").expect("written");
    symlink(&target, &folder).expect("a link");
    let seed = &mut audited(&world, &folder.join("log"));
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
