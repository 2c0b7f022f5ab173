//! Upstreams that write down what reaches them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

const PROGRAM: &str = include_str!("../../cases/upstream.py");

/// Where the program, the plans and the records are.
pub(crate) struct Recorders {
    folder: PathBuf,
}

/// A request that reached an upstream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) tool: Option<String>,
    pub(crate) bytes: u64,
}

impl Recorders {
    pub(crate) fn new(folder: &Path) -> Recorders {
        std::fs::write(folder.join("upstream.py"), PROGRAM).expect("written");
        Recorders { folder: folder.to_owned() }
    }

    /// The `mcpServers` entry of a server that behaves as `plan` says.
    pub(crate) fn entry(&self, server: &str, plan: &Value) -> Value {
        let plan_file = self.folder.join(format!("{}.plan", file_name(server)));
        std::fs::write(&plan_file, plan.to_string()).expect("written");
        let args = [self.folder.join("upstream.py"), plan_file, self.record(server)];
        json!({"command": "python3", "args": args})
    }

    pub(crate) fn received(&self, server: &str) -> Vec<Received> {
        let text = std::fs::read_to_string(self.record(server)).unwrap_or_default();
        let received = |line: &str| {
            // The last line may be half written.
            let value: Value = serde_json::from_str(line).ok()?;
            Some(Received {
                method: value["method"].as_str()?.to_owned(),
                tool: value["tool"].as_str().map(ToOwned::to_owned),
                bytes: value["bytes"].as_u64()?,
            })
        };
        text.lines().filter_map(received).collect()
    }

    /// The calls among them: of this tool, or of any.
    pub(crate) fn calls(&self, server: &str, tool: Option<&str>) -> Vec<Received> {
        let mut received = self.received(server);
        received.retain(|one| {
            one.method == "tools/call" && (tool.is_none() || one.tool.as_deref() == tool)
        });
        received
    }

    /// Where a case may keep what only the harness needs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn record(&self, server: &str) -> PathBuf {
        self.folder.join(format!("{}.record", file_name(server)))
    }
}

fn file_name(server: &str) -> String {
    server.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
