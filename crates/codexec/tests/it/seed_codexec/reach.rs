//! What code reaches of codexec's own is its own: sessions that it opened, logs of its client,
//! scripts that it adds. All else needs the user's word.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Seed, configure};
use crate::attacks::host::within;
use crate::support::{Client, PATIENCE, descendants};

const LANGUAGES: [&str; 4] = ["typescript", "javascript", "python", "node"];

/// Code that calls one function with one object of arguments, and gives its answer, or the code of
/// the error and its message.
fn call(language: &str, function: &str, args: &Value) -> String {
    if language == "python" {
        return format!(
            "import json\ntry:\n    said = await {function}(json.loads({:?}))\n\
             except ToolError as error:\n    said = [error.code, str(error)]\nsaid",
            args.to_string()
        );
    }
    format!(
        "(await {function}({args}).catch((error) => [error.code, error.message])) /* {language} */"
    )
}

impl Seed {
    /// What code in this language gives that calls one function.
    #[track_caller]
    fn code(&mut self, language: &str, function: &str, args: &Value, allowed: &[&str]) -> Value {
        let code = call(language, function, args);
        let mut run = json!({"language": language, "code": code});
        if !allowed.is_empty() {
            run["allowed_tools"] = json!(allowed);
        }
        self.done("execute_code", &run)["result"].clone()
    }

    /// That the function is refused to code in every language, in words that name the grant.
    #[track_caller]
    fn refuses_code(&mut self, function: &str, args: &Value, code: &str, grant: &str) {
        for language in LANGUAGES {
            for allowed in [&[][..], &["*"], &["codexec.*"]] {
                let said = self.code(language, function, args, allowed);
                assert_eq!(said[0], code, "{language} {function} {allowed:?}: {said}");
                let message = said[1].as_str().expect("a message");
                let (setting, tool) = (format!("{grant:?} in `may`"), format!("codexec.{grant}"));
                assert!(message.contains(&setting) && message.contains(&tool), "{message}");
            }
        }
    }

    fn sessions(&mut self) -> Vec<Value> {
        self.done("list_sessions", &json!({}))["sessions"].as_array().expect("a list").clone()
    }

    fn running(&mut self) -> Value {
        self.done("search_execution_logs", &json!({"status": "running"}))["total_count"].clone()
    }
}

#[test]
fn own_1_code_finds_no_session_that_it_did_not_open() {
    let seed = &mut Seed::start();
    let started = seed.done("start_session", &json!({"language": "javascript", "name": "mine"}));
    let id = started["session_id"].as_str().expect("an id").to_owned();
    assert_eq!(seed.cell(&id, "let secret = 41; secret + 1"), "42");
    for handle in ["mine", &id] {
        let send = json!({"session_id": handle, "code": "secret"});
        seed.refuses_code("sessions.send", &send, "UPSTREAM_ERROR", "sessions.all");
        let other = json!({"session_id": handle});
        seed.refuses_code("sessions.close", &other, "UPSTREAM_ERROR", "sessions.all");
    }
    let snapshot = json!({"session_id": id, "name": "stolen"});
    seed.refuses_code("sessions.snapshot", &snapshot, "UPSTREAM_ERROR", "sessions.all");
    for language in LANGUAGES {
        let listed = seed.code(language, "sessions.list", &json!({}), &[]);
        assert_eq!(listed, json!({"sessions": []}), "{language}");
        // A name is the code's own: it opens another session, and says nothing of the user's.
        let opened = seed.code(language, "sessions.start", &json!({"name": "mine"}), &[]);
        assert_ne!(opened["session_id"], json!(id), "{language}: {opened}");
        assert_eq!(opened["success"], true, "{language}: {opened}");
    }
    assert_eq!(seed.cell("mine", "secret"), "41");
}

/// A session that code opens under a name is not the one that the user means by it.
#[test]
fn own_1_code_takes_no_name_from_its_user() {
    let seed = &mut Seed::start();
    let outer = seed.session("javascript");
    let open = "const {session_id} = await sessions.start('javascript', 'mine'); session_id";
    let squatter = seed.cell(&outer, open);
    let args = json!({"session": "mine", "language": "javascript", "code": "typeof squat"});
    let send = format!("(await sessions.send('{squatter}', 'var squat = 1')).success");
    assert_eq!(seed.cell(&outer, &send), "true");
    assert_eq!(seed.done("execute_code", &args)["result"], "undefined");
    // Nor do other sessions, or executions, have it.
    let other = seed.session("javascript");
    let said = seed.cell(
        &other,
        "await sessions.send('mine', '1').catch((error) => error.message.split(':')[0])",
    );
    assert_eq!(said, "SESSION_NOT_FOUND");
}

#[test]
fn own_1_the_users_word_lets_code_use_other_sessions() {
    for (settings, allowed) in
        [("", &["*", "codexec.sessions.all"][..]), ("[code]\nmay = [\"sessions.all\"]\n", &[])]
    {
        let seed = &mut Seed::with(&json!({}), settings);
        let started =
            seed.done("start_session", &json!({"language": "javascript", "name": "mine"}));
        seed.cell("mine", "let secret = 41");
        for language in LANGUAGES {
            let args = json!({"session_id": "mine", "code": "secret"});
            let sent = seed.code(language, "sessions.send", &args, allowed);
            assert_eq!(sent["stdout"], "41", "{language}: {sent}");
            let listed = seed.code(language, "sessions.list", &json!({}), allowed);
            assert_eq!(listed["sessions"][0]["session_id"], started["session_id"], "{language}");
        }
        // A request that narrows tools narrows this, too.
        let args = json!({"session_id": "mine", "code": "secret"});
        let said = seed.code("python", "sessions.send", &args, &["codexec.send_to_session"]);
        assert_eq!(said[0], "UPSTREAM_ERROR", "{said}");
    }
}

/// What code says about its own code counts for nothing.
#[test]
fn own_1_code_grants_nothing_to_code() {
    let seed = &mut Seed::start();
    seed.done("start_session", &json!({"language": "javascript", "name": "mine"}));
    let inner = "(await sessions.send('mine', '1').catch((error) => error.message.split(':')[0]))";
    let script = json!({
        "name": "inner", "description": "d", "language": "javascript", "code": inner,
    });
    seed.done("save_script", &script);
    let all = "allowed_tools: ['*', 'codexec.sessions.all']";
    for code in [
        format!("(await scripts.run('inner', {{{all}}})).result"),
        format!(
            "const {{session_id}} = await sessions.start('javascript');\n\
             (await sessions.send(session_id, {inner:?}, {{{all}}})).stdout"
        ),
    ] {
        let ran = seed.done("execute_code", &json!({"language": "javascript", "code": code}));
        assert_eq!(ran["result"], "SESSION_NOT_FOUND", "{code}: {ran}");
        // What the user grants the outer code, the inner has too.
        let granted = json!({
            "language": "javascript", "code": code, "allowed_tools": ["*", "codexec.sessions.all"],
        });
        let ran = seed.done("execute_code", &granted);
        assert!(ran["result"].to_string().contains("success"), "{code}: {ran}");
    }
}

/// Opens as many sessions as there may be and leaves two loops in each, one of them in the
/// background, and does not wait for anything.
const LOOPS: &str = "
const opened = [];
for (;;) {
  const started = await sessions.start('bash').catch(() => null);
  if (started === null) break;
  opened.push(started.session_id);
}
for (const id of opened) {
  const loop = \"bash -c 'while :; do :; done' own_2_loop\";
  await sessions.send(id, loop + ' &');
  sessions.send(id, loop).catch(() => {});
}
";

/// How many of the loops live.
fn loops(server: u32) -> usize {
    let is_loop = |pid: &u32| {
        let line = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
        line.is_ok_and(|line| String::from_utf8_lossy(&line).contains("own_2_loop"))
    };
    descendants(server).iter().filter(|pid| is_loop(pid)).count()
}

#[test]
fn own_2_sessions_that_code_opened_end_with_it() {
    for (end, timeout_ms, error) in [
        ("opened.length", 60_000, Value::Null),
        ("throw new Error('x')", 60_000, json!("RUNTIME_ERROR")),
        ("for (;;) {}", 4_000, json!("TIMEOUT")),
        ("await new Promise((done) => setTimeout(done, 60_000))", 4_000, json!("TIMEOUT")),
    ] {
        let seed = &mut Seed::start();
        let args = json!({
            "language": "javascript", "code": format!("{LOOPS}{end}"), "timeout_ms": timeout_ms,
        });
        let ran = seed.call("execute_code", &args);
        assert_eq!(ran["error_code"], error, "{end}: {ran}");
        if error.is_null() {
            // Some places are left to the user.
            assert_eq!(ran["result"], 3, "{ran}");
        }
        assert_eq!(seed.sessions(), Vec::<Value>::new(), "{end}");
        assert_eq!(loops(seed.client.child.id()), 0, "{end}");
        // Each execution that was begun has its end in the records.
        assert_eq!(seed.running(), 0, "{end}");
    }
}

/// The same, ended from outside.
#[test]
fn own_2_sessions_that_code_opened_end_with_a_cancelled_call_and_with_the_server() {
    let seed = &mut Seed::start();
    let server = seed.client.child.id();
    let args = json!({
        "language": "javascript", "code": format!("{LOOPS}for (;;) {{}}"), "timeout_ms": 60_000,
    });
    let id = seed.client.send_call("execute_code", &args);
    assert!(within(PATIENCE, || loops(server) >= 6), "the loops do not start");
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
    });
    seed.client.write(&cancelled);
    assert!(within(PATIENCE, || loops(server) == 0), "loops are left");
    assert!(within(PATIENCE, || seed.sessions().is_empty()), "sessions are left");
    assert!(within(PATIENCE, || seed.running() == 0), "executions are left");

    seed.client.send_call("execute_code", &args);
    assert!(within(PATIENCE, || loops(server) >= 6), "the loops do not start");
    let below = descendants(server);
    seed.client.leave();
    let lives = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        stat.contains("own_2_loop")
    };
    assert!(within(Duration::from_secs(10), || !below.iter().any(lives)), "loops are left");
}

/// For code in a session they last as long as that: its cells share them.
#[test]
fn own_2_sessions_that_a_session_opened_end_with_it() {
    let seed = &mut Seed::start();
    let outer = seed.session("javascript");
    let open = "const inner = (await sessions.start('python')).session_id;\n\
                (await sessions.send(inner, 'x = 6')).success";
    assert_eq!(seed.cell(&outer, open), "true");
    assert_eq!(seed.cell(&outer, "(await sessions.send(inner, 'x * 7')).stdout"), "42");
    // What a cell began there and did not wait for ends with the cell, and the session goes on.
    let left = "sessions.send(inner, 'while True: pass').catch(() => {}); await 1; 'left'";
    assert_eq!(seed.cell(&outer, left), "left");
    assert_eq!(seed.running(), 0);
    assert_eq!(seed.cell(&outer, "(await sessions.send(inner, 'x * 7')).stdout"), "42");
    // One that the inner one opens ends with that.
    let nested = "await sessions.send(inner, \"await sessions.start('javascript')\");\n\
                  (await sessions.list()).sessions.length";
    assert_eq!(seed.cell(&outer, nested), "2");
    assert_eq!(seed.sessions().len(), 3);
    seed.done("close_session", &json!({"session_id": outer}));
    assert_eq!(seed.sessions(), Vec::<Value>::new());
    let folder = seed.client.home.path().join("state");
    let ended = crate::attacks::bench::rows(&folder, "select reason from sessions order by seq");
    let reasons: Vec<&Value> = ended.iter().map(|row| &row[0]).collect();
    assert_eq!(reasons, ["manual", "opener_ended", "opener_ended"]);
}

#[test]
fn own_2_the_users_word_lets_sessions_outlive_code() {
    let seed = &mut Seed::start();
    let args = json!({"language": "javascript", "name": "kept"});
    let allowed = ["*", "codexec.sessions.keep"];
    let started = seed.code("python", "sessions.start", &args, &allowed);
    assert_eq!(seed.sessions()[0]["session_id"], started["session_id"]);
    assert_eq!(seed.cell("kept", "6 * 7"), "42");
}

/// A client that shares the state of another.
fn sharing(first: &Seed, settings: &str) -> Seed {
    let mut client = Client::sharing(first.client.home.path(), |command| {
        configure(command, settings);
    });
    client.shake_hands();
    Seed { client }
}

#[test]
fn own_3_code_reads_the_logs_of_its_own_client_only() {
    let first = &mut Seed::start();
    let secret = first
        .done("execute_code", &json!({"language": "javascript", "code": "'word of the other'"}));
    let id = json!({"execution_id": secret["execution_id"]});
    let second = &mut sharing(first, "");
    let own = second.done("execute_code", &json!({"language": "bash", "code": "true"}));
    second.refuses_code("logs.get", &id, "UPSTREAM_ERROR", "logs.all");
    for language in LANGUAGES {
        for query in
            [json!({"query": "other"}), json!({"query": "other", "language": "javascript"})]
        {
            let found = second.code(language, "logs.search", &query, &[]);
            let codes: Vec<&str> = found["results"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|one| one["execution_id"].as_str().expect("an id"))
                .collect();
            assert!(!codes.contains(&id["execution_id"].as_str().expect("an id")), "{found}");
        }
        let found = second.code(language, "logs.search", &json!({"language": "bash"}), &[]);
        assert_eq!(found["total_count"], 1, "{language}: {found}");
        let every = second.code(language, "logs.search", &json!({"limit": 100}), &[]);
        assert!(!every.to_string().contains("word of the other"), "{language}: {every}");
        let read = json!({"execution_id": own["execution_id"]});
        let log = second.code(language, "logs.get", &read, &[]);
        assert_eq!(log["language"], "bash", "{language}: {log}");
        let log = second.code(language, "logs.get", &id, &["*", "codexec.logs.all"]);
        assert_eq!(log["result"], "\"word of the other\"", "{language}: {log}");
    }
    // The client itself reads all of the user's.
    let log = second.done("get_execution_log", &id);
    assert_eq!(log["result"], "\"word of the other\"");
    let found = second.done("search_execution_logs", &json!({"language": "javascript"}));
    assert!(found.to_string().contains("word of the other"), "{found}");
}

#[test]
fn own_4_code_adds_scripts_and_changes_none() {
    let seed = &mut Seed::start();
    let script = |name: &str, code: &str| json!({"name": name, "description": "d", "code": code, "language": "bash"});
    seed.done("save_script", &script("mine", "echo mine"));
    let other = script("mine", "echo yours");
    for function in ["scripts.save", "scripts.save_and_run"] {
        seed.refuses_code(function, &other, "TOOL_NOT_ALLOWED", "scripts.replace");
    }
    let mine = json!({"name": "mine"});
    seed.refuses_code("scripts.delete", &mine, "TOOL_NOT_ALLOWED", "scripts.delete");
    let mut tool = script("tool", "echo tool");
    tool["expose"] = json!(true);
    seed.refuses_code("scripts.save", &tool, "TOOL_NOT_ALLOWED", "scripts.expose");
    let kept = seed.done("get_script", &mine);
    assert_eq!((&kept["code"], &kept["version"]), (&json!("echo mine"), &json!(1)));
    for language in LANGUAGES {
        let name = format!("by {language}");
        let saved = seed.code(language, "scripts.save", &script(&name, "echo 1"), &[]);
        assert_eq!(saved["version"], 1, "{language}: {saved}");
        // Saying the same again changes nothing.
        let again = seed.code(language, "scripts.save", &script(&name, "echo 1"), &[]);
        assert_eq!(again["version"], 1, "{language}: {again}");
        let read = seed.code(language, "scripts.get", &mine, &[]);
        assert_eq!(read["code"], "echo mine", "{language}: {read}");
    }
}

#[test]
fn own_4_the_users_word_lets_code_replace_and_delete_scripts() {
    let may = "[code]\nmay = [\"scripts.replace\", \"scripts.delete\", \"scripts.expose\"]\n";
    let named =
        ["*", "codexec.scripts.replace", "codexec.scripts.delete", "codexec.scripts.expose"];
    for (settings, allowed) in [(may, &[][..]), ("", &named)] {
        let seed = &mut Seed::with(&json!({}), settings);
        for language in LANGUAGES {
            let first = json!({"name": "a", "description": "d", "code": "1", "language": "python"});
            seed.done("save_script", &first);
            let other = json!({"name": "a", "description": "d", "code": "2", "expose": true, "language": "python"});
            let saved = seed.code(language, "scripts.save", &other, allowed);
            assert_eq!(saved["version"], 2, "{language}: {saved}");
            let gone = seed.code(language, "scripts.delete", &json!({"name": "a"}), allowed);
            assert_eq!(gone["success"], true, "{language}: {gone}");
        }
    }
}

#[test]
fn own_5_code_uses_the_snapshots_of_its_own_client_only() {
    let first = &mut Seed::start();
    let session = first.session("javascript");
    first.cell(&session, "const secret = 41");
    first.cell(&session, "await sessions.snapshot('kept')");
    // Its own it may replace.
    first.cell(&session, "await sessions.snapshot('kept')");
    let second = &mut sharing(first, "");
    let kept = json!({"name": "kept"});
    second.refuses_code("sessions.restore", &kept, "TOOL_NOT_ALLOWED", "sessions.all");
    assert_eq!(
        second.code("python", "sessions.snapshots", &json!({}), &[]),
        json!({"snapshots": []})
    );
    let own = second.session("javascript");
    let taken = second.send(&own, "await sessions.snapshot('kept')");
    assert_eq!(taken["error_code"], "TOOL_NOT_ALLOWED", "{taken}");
    let code = "const {session_id} = await sessions.restore('kept');\n\
                (await sessions.send(session_id, 'secret')).stdout";
    let granted = json!({
        "language": "javascript", "code": code, "allowed_tools": ["*", "codexec.sessions.all"],
    });
    assert_eq!(second.done("execute_code", &granted)["result"], "41");
}

#[test]
fn a_record_tells_what_the_execution_was_admitted_with() {
    let seed = &mut Seed::with(&json!({}), "[tools]\nallowed = [\"codexec.*\", \"time.*\"]\n");
    let code = "(await scripts.run('inner')).execution_id";
    let script = json!({
        "name": "inner", "description": "d", "language": "javascript", "code": "1",
    });
    seed.done("save_script", &script);
    let ran = seed.done(
        "execute_code",
        &json!({
            "language": "javascript", "code": code,
            "allowed_tools": ["codexec.run_script", "codexec.logs.all"],
        }),
    );
    let admitted = json!([["codexec.*", "time.*"], ["codexec.run_script", "codexec.logs.all"]]);
    for id in [&ran["execution_id"], &ran["result"]] {
        let log = seed.done("get_execution_log", &json!({"execution_id": id}));
        assert_eq!(log["allowed_tools"], admitted, "{log}");
        assert_eq!(log["grants"], json!(["logs.all"]), "{log}");
    }
    let seed = &mut Seed::start();
    let ran = seed.done("execute_code", &json!({"language": "javascript", "code": "1"}));
    let log = seed.done("get_execution_log", &json!({"execution_id": ran["execution_id"]}));
    assert_eq!((&log["allowed_tools"], &log["grants"]), (&json!([["*"]]), &Value::Null));
    let mut show = crate::support::command(seed.client.home.path());
    let id = ran["execution_id"].as_str().expect("an id");
    let shown = show.args(["logs", "show", id]).output().expect("runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("allowed_tools      [\"*\"]"), "{shown}");
}
