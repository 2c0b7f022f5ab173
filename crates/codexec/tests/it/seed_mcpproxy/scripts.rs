//! Stored scripts: run by name, listed, and refused by name.

use serde_json::{Value, json};

use super::run;
use crate::support::{Client, command};

/// A client in a home whose library has these scripts.
fn client_with(scripts: &[(&str, &str, &str)]) -> Client {
    let mut client = Client::with(&json!({}), |command| {
        command.args(["--toolset", "codexec,mcpproxy"]);
    });
    for (name, language, code) in scripts {
        let script = json!({"name": name, "language": language, "code": code});
        client.call("save_script", &script).fine();
    }
    client
}

fn error(client: &mut Client, arguments: &Value) -> (String, String) {
    let reply = run(client, arguments);
    assert!(reply.is_error, "{reply:?}");
    let text = |name: &str| reply.value["error"][name].as_str().expect("text").to_owned();
    (text("code"), text("message"))
}

#[test]
fn a_saved_script_is_run_by_its_name() {
    let scripts = [
        ("double", "javascript", "input.n * 2"),
        ("typed", "typescript", "const n: number = input.n; n"),
    ];
    let mut client = client_with(&scripts);
    let doubled = run(&mut client, &json!({"script": "double", "input": {"n": 21}}));
    assert_eq!(doubled.value, json!({"ok": true, "value": 42}));
    let typed = json!({"script": "typed", "language": "typescript", "input": {"n": 1}});
    assert_eq!(run(&mut client, &typed).value, json!({"ok": true, "value": 1}));
    let options = json!({"script": "double", "options": {"timeout_ms": 600_001}});
    assert_eq!(error(&mut client, &options).0, "INVALID_ARGS");
    let (code, message) = error(&mut client, &json!({"script": "typed", "language": "javascript"}));
    assert_eq!(code, "INVALID_LANGUAGE");
    assert_eq!(
        message,
        "language: script \"typed\" is typescript, not javascript; leave `language` out"
    );
    let mut list = command(client.home.path());
    let output = list.args(["code", "scripts", "list", "--json"]).output().expect("it runs");
    let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let script = |name: &str, language: &str| json!({"name": name, "language": language, "where": "library"});
    let expected =
        json!({"scripts": [script("double", "javascript"), script("typed", "typescript")]});
    assert_eq!(listed, expected);
}

#[test]
fn a_name_that_is_not_there_lists_those_that_are() {
    let names: Vec<String> = (10..31).map(|n| format!("s{n}")).collect();
    let scripts: Vec<(&str, &str, &str)> =
        names.iter().map(|name| (name.as_str(), "javascript", "1")).collect();
    let (most, all) = (scripts.split_at(20).0, &scripts[..]);
    let mut client = client_with(&[]);
    let nothing = error(&mut client, &json!({"script": "a"}));
    assert_eq!(
        nothing,
        ("SCRIPT_NOT_FOUND".to_owned(), "script: there is no \"a\"; none is stored".to_owned())
    );
    for (scripts, known) in
        [(most, "there are: s10, s11, "), (all, "the first 20 of 21: s10, s11, ")]
    {
        let (code, message) = error(&mut client_with(scripts), &json!({"script": "a"}));
        assert_eq!(code, "SCRIPT_NOT_FOUND");
        let expected = format!("script: there is no \"a\"; {known}");
        assert!(message.starts_with(&expected) && message.ends_with(", s29"), "{message}");
    }
}

#[test]
fn a_script_is_never_a_path() {
    let mut client = client_with(&[]);
    for name in ["", "../a", "a/b", "/etc/passwd", "a.js", &"a".repeat(65)] {
        let (code, message) = error(&mut client, &json!({"script": name}));
        assert_eq!(code, "INVALID_SCRIPT_NAME", "{name}");
        assert!(message.ends_with("is not a name; use 1 to 64 of A-Z a-z 0-9 _ -"), "{message}");
    }
}
