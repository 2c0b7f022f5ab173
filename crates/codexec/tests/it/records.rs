//! What stands in the store at the moment in which it matters.

use serde_json::json;

use crate::support::Client;

/// Looks into the store that it is given while a call of its tool is under way.
const WITNESS: &str = r#"
import json, sqlite3, sys
database = sys.argv[1]
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "witness", "version": "0"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
    else:
        rows = sqlite3.connect("file:" + database + "?mode=ro", uri=True).execute(
            "SELECT e.status, c.number, c.server, c.tool, c.args, c.duration_us FROM calls c "
            "JOIN executions e ON e.seq = c.execution ORDER BY c.number").fetchall()
        r = {"content": [{"type": "text", "text": json.dumps(rows)}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}) + "\n")
    sys.stdout.flush()
"#;

fn witness(home: &std::path::Path) -> serde_json::Value {
    let database = home.join("codexec.db");
    json!({"witness": {"command": "python3", "args": ["-c", WITNESS, database]}})
}

#[test]
fn log_2_a_call_is_written_down_before_it_goes_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::with(&witness(folder.path()), |command| {
        command.env("CODEXEC_HOME", folder.path());
    });
    let first = client.run("await tools.witness.look({a: 1})").fine();
    let under_way = json!([["running", 1, "witness", "look", "{\"a\":1}", null]]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&first).expect("json"), under_way);
}

/// A script narrows nothing by itself; whoever runs it from code is held to that code's tools.
#[test]
fn ses_7_what_code_starts_can_do_no_more_than_the_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::with(&witness(folder.path()), |command| {
        command.env("CODEXEC_HOME", folder.path());
    });
    let save = "await scripts.save({name: 'looker', description: '', language: 'javascript', \
                code: 'await tools.witness.look({})'}); (await scripts.run('looker')).success";
    assert_eq!(client.run(save).fine(), "true");
    let run = "const ran = await scripts.run('looker'); [ran.success, ran.error_code]";
    let narrowed = json!({"code": run, "allowed_tools": ["codexec.*"]});
    let said = client.call("execute_code", &narrowed).fine();
    assert_eq!(said, "[false,\"SERVER_NOT_ALLOWED\"]");
    let said = client.call("execute_code", &json!({"code": run, "allowed_tools": []})).failed();
    assert_eq!(said.split(':').next(), Some("TOOL_NOT_ALLOWED"), "{said}");
}

#[test]
fn ses_7_nobody_else_finds_a_session() {
    let mut client = Client::start(&json!({}));
    let call = json!({
        "session": "mine", "language": "typescript", "code": "let secret = 7; secret",
    });
    assert_eq!(client.call("execute_code", &call).fine(), "7");
    // Another server of the same user has sessions of its own, whatever their names.
    let mut other = Client::sharing(client.home.path(), |_| {});
    other.shake_hands();
    let call = json!({"session": "mine", "language": "typescript", "code": "secret"});
    let said = other.call("execute_code", &call).failed();
    assert!(said.contains("secret is not defined"), "{said}");
    let made_up = json!({"session": "sess_00000000000000000000000000000000", "code": "1"});
    let said = client.call("execute_code", &made_up).failed();
    assert_eq!(said.split(':').next(), Some("SESSION_NOT_FOUND"), "{said}");
}
