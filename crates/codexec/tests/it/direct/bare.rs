//! A server without us between.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::can_ask;

/// What a server says to whoever speaks to it without us between.
pub(super) struct Bare {
    child: std::process::Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    next_id: u64,
}

impl Bare {
    pub(super) fn start(server: &Value) -> Bare {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let args = server["args"].as_array().expect("arguments").iter().map(text);
        let mut child = Command::new(text(&server["command"]))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut bare = Bare { child, lines, next_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": can_ask(),
            "clientInfo": {"name": "codexec", "version": "0"},
        });
        bare.request("initialize", &hello);
        bare.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        bare
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().expect("piped"), "{message}").expect("written");
    }

    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.lines.next().expect("an answer").expect("UTF-8");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id && message["method"].is_null() {
                return message["result"].clone();
            }
        }
    }

    /// All tools, by pages.
    pub(super) fn tools(&mut self) -> Vec<Value> {
        let list = self.request("tools/list", &json!({}));
        list["tools"].as_array().expect("tools").clone()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
