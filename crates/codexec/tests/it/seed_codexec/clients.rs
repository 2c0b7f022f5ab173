//! Clients that nobody here wrote use the toolset.

use serde_json::{Value, json};

use crate::clients::{Inspector, sdk_saw};

const SDK: &str = include_str!("sdk.py");

#[test]
fn the_python_sdk_uses_sessions_scripts_and_logs() {
    let Some(saw) = sdk_saw("codexec", SDK) else { return };
    let expected = json!({
        "tools": [
            "execute_code", "start_session", "send_to_session", "close_session", "list_sessions",
            "install_package", "save_script", "get_script", "list_scripts", "search_scripts",
            "run_script", "save_and_run_script", "delete_script", "search_execution_logs",
            "get_execution_log",
        ],
        "sent": "21",
        "threw": [false, true],
        "closed": 3,
        "ran": "hello\n",
        "logs": 3,
    });
    assert_eq!(saw, expected);
}

/// It starts a codexec for each question, so what it saves must be there for the next.
#[test]
fn the_inspector_saves_a_script_and_runs_it_later() {
    let settings = "toolset = [\"codexec\"]\n";
    let Some(inspector) = Inspector::with_settings("modern", settings) else { return };
    let call = |tool: &str, args: &Value| {
        let args = args.to_string();
        let ask = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &args];
        let (code, said, complaint) = inspector.ask(&ask);
        let text = said["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        assert!(value.is_object(), "{tool}: {code:?} {said} {complaint}");
        value
    };
    let code = "echo \"Hello, $1\"";
    let draft = json!({"name": "greet", "description": "Greets", "language": "bash", "code": code});
    assert_eq!(call("save_script", &draft)["version"], 1);
    let ran = call("run_script", &json!({"name": "greet", "args": ["Ada"]}));
    assert_eq!(ran["stdout"], "Hello, Ada\n");
    let missing = call("get_script", &json!({"name": "grete"}));
    assert_eq!(missing["error_code"], "SCRIPT_NOT_FOUND");
    assert!(missing["error"].as_str().is_some_and(|error| error.contains("greet")), "{missing}");
}
