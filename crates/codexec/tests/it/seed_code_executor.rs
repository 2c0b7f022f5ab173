//! The toolset `code-executor` is a contract: what the documentation of Code Executor MCP shows is
//! asked here of real servers, and what was broken there works.

mod audit;
mod bad_input;
mod cases;
mod clients;
mod defects;
mod discovery;
mod permissions;

use std::process::Command;

use serde_json::{Value, json};

use crate::support::Client;
use crate::world::World;

/// A client that has chosen the toolset.
struct Seed {
    client: Client,
}

impl Seed {
    fn start() -> Seed {
        Seed::with(&json!({}), |_| {})
    }

    fn with(servers: &Value, change: impl FnOnce(&mut Command)) -> Seed {
        Seed {
            client: Client::with(servers, |command| {
                command.args(["--toolset", "code-executor"]);
                change(command);
            }),
        }
    }

    /// With real servers, once all of them run: discovery does not wait for a slow machine.
    fn in_world(world: &World, change: impl FnOnce(&mut Command)) -> Seed {
        let mut seed = Seed::with(&world.servers, change);
        let code = "await Promise.all([
            callMCPTool('mcp__everything__echo', { message: '' }),
            callMCPTool('mcp__filesystem__list_allowed_directories'),
            callMCPTool('mcp__time__get_current_time', { timezone: 'UTC' }),
        ]); return 'all run';";
        let all = json!({"code": code, "allowedTools": ["mcp__*__*"], "timeoutMs": 60_000});
        assert_eq!(seed.done("executeTypescript", &all), "all run");
        seed
    }

    /// The whole result of a call.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.client.send_call(tool, arguments);
        self.wait(id)
    }

    fn wait(&mut self, id: u64) -> Value {
        self.client.wait(id)["result"].take()
    }

    /// What the schema promises, of an execution that took place.
    #[track_caller]
    fn executed(&mut self, tool: &str, arguments: &Value) -> Value {
        let mut result = self.call(tool, arguments);
        let structured = result["structuredContent"].take();
        assert_eq!(result["isError"], structured["success"] == false, "{result} {structured}");
        structured
    }

    /// The output of one that has to succeed.
    #[track_caller]
    fn done(&mut self, tool: &str, arguments: &Value) -> String {
        let executed = self.executed(tool, arguments);
        assert_eq!(executed["success"], true, "{arguments}: {executed}");
        executed["output"].as_str().expect("text").to_owned()
    }

    /// The error of one that has to fail.
    #[track_caller]
    fn failed(&mut self, tool: &str, arguments: &Value) -> String {
        let executed = self.executed(tool, arguments);
        assert_eq!(executed["success"], false, "{arguments}: {executed}");
        executed["error"].as_str().expect("text").to_owned()
    }

    /// What is said of one that is not run at all.
    #[track_caller]
    fn refused(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{arguments}: {result}");
        assert_eq!(result["structuredContent"], Value::Null, "{result}");
        let text = result["content"][0]["text"].as_str().expect("text");
        serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON: {text}"))
    }
}
