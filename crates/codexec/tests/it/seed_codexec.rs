//! The toolset `codexec` is a contract: what its documentation printed is sent here as it stands,
//! and the answers have the same keys, in the same order, with values of the same kinds.

mod bad_input;
mod clients;
mod execute;
mod inside;
mod logs;
mod packages;
mod reach;
mod scripts;
mod sessions;
mod table;

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Client, keep_settings};

/// A client that has chosen the toolset.
struct Seed {
    client: Client,
}

impl Seed {
    fn start() -> Seed {
        Seed::with(&json!({}), "")
    }

    fn with(servers: &Value, settings: &str) -> Seed {
        Seed { client: Client::with(servers, |command| configure(command, settings)) }
    }

    /// The function's JSON, whatever it says.
    fn call(&mut self, tool: &str, args: &Value) -> Value {
        let id = self.client.send_call(tool, args);
        self.wait(id)
    }

    fn wait(&mut self, id: u64) -> Value {
        let said = self.client.wait_call(id);
        let value: Value =
            serde_json::from_str(&said.text).unwrap_or_else(|_| panic!("not JSON: {}", said.text));
        assert_eq!(said.is_error, value["success"] == false, "{value}");
        value
    }

    /// One that has to succeed.
    #[track_caller]
    fn done(&mut self, tool: &str, args: &Value) -> Value {
        let value = self.call(tool, args);
        assert_ne!(value["success"], false, "{tool} {args}: {value}");
        value
    }

    /// The code of one that has to be refused, and its sentence.
    #[track_caller]
    fn refused(&mut self, tool: &str, args: &Value) -> (String, String) {
        let value = self.call(tool, args);
        assert_eq!(value["success"], false, "{tool}: {value}");
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        (text("error_code"), text("error"))
    }

    fn session(&mut self, language: &str) -> String {
        let started = self.done("start_session", &json!({"language": language}));
        started["session_id"].as_str().expect("an id").to_owned()
    }

    fn send(&mut self, session: &str, code: &str) -> Value {
        self.call("send_to_session", &json!({"session_id": session, "code": code}))
    }

    /// The output of a cell that has to succeed.
    #[track_caller]
    fn cell(&mut self, session: &str, code: &str) -> String {
        let sent = self.send(session, code);
        assert_eq!(sent["success"], true, "{code}: {sent}");
        sent["stdout"].as_str().expect("text").to_owned()
    }
}

fn configure(command: &mut Command, settings: &str) {
    let home = command.get_current_dir().expect("set").to_owned();
    if !home.join("state").exists() {
        keep_settings(&home, settings);
    }
    command.args(["--toolset", "codexec"]);
}

/// The keys of the example come first and in its order; after them come none but `more`.
#[track_caller]
fn like(got: &Value, example: &Value, more: &[&str]) {
    let (Value::Object(fields), Value::Object(expected)) = (got, example) else {
        assert_eq!(json_type(got), json_type(example), "{got} is not like {example}");
        return;
    };
    let keys: Vec<&String> = fields.keys().collect();
    let expected_keys: Vec<&String> = expected.keys().collect();
    assert_eq!(keys[..expected_keys.len().min(keys.len())], expected_keys, "{got}");
    for key in &keys[expected_keys.len()..] {
        assert!(more.contains(&key.as_str()), "nobody has promised {key}: {got}");
    }
    for (key, value) in expected {
        match (&fields[key], value) {
            (Value::Object(_), Value::Object(_)) => like(&fields[key], value, more),
            (Value::Array(items), Value::Array(examples)) => {
                if let (Some(item), Some(example)) = (items.first(), examples.first()) {
                    like(item, example, more);
                }
            }
            (field, value) => assert_eq!(json_type(field), json_type(value), "{key} of {got}"),
        }
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
