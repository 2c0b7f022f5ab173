//! The toolset `code-execution-mode` is a contract: the cases in `cases.json` say what is asked,
//! what has to come back, and which statement about that system they prove.

mod cases;
mod edges;
mod toon;

use serde_json::{Value, json};

use crate::support::{Client, keep_settings};
use crate::world::World;

/// A client that has chosen the toolset, and real servers.
struct Seed {
    client: Client,
    /// Lives as long as the server that shows it.
    _world: World,
}

impl Seed {
    fn start() -> Option<Seed> {
        Seed::with("", &[])
    }

    fn with(settings: &str, environment: &[(&str, &str)]) -> Option<Seed> {
        let mut world = World::find()?;
        let modules = world.modules();
        world.servers["my-notes"] = json!({
            "command": modules.join(".bin/node"),
            "args": [modules.join("../../fleet/node_modules/.bin/mcp-server-memory")],
            "env": {"MEMORY_FILE_PATH": world.folder.path().join("notes.json")},
        });
        let client = Client::with(&world.servers, |command| {
            let home = command.get_current_dir().expect("set").to_owned();
            keep_settings(&home, settings);
            command.args(["--toolset", "code-execution-mode"]).envs(environment.iter().copied());
        });
        let mut seed = Seed { client, _world: world };
        // Discovery does not wait long for a slow machine; calls do.
        for (server, call) in [
            ("everything", "mcp_everything.echo(message='')"),
            ("filesystem", "mcp_filesystem.list_allowed_directories()"),
            ("time", "mcp_time.get_current_time(timezone='UTC')"),
            ("my-notes", "mcp_my_notes.read_graph()"),
        ] {
            let code = format!("await {call}\n'it runs'");
            let ran = seed.run(&json!({"code": code, "servers": [server], "timeout": 120}));
            assert_eq!(ran["structuredContent"]["result"], "it runs", "{ran}");
        }
        Some(seed)
    }

    /// The whole result.
    fn run(&mut self, arguments: &Value) -> Value {
        run(&mut self.client, arguments)
    }
}

fn run(client: &mut Client, arguments: &Value) -> Value {
    let id = client.send_call("run_python", arguments);
    let reply = client.wait(id);
    assert!(reply["result"].is_object(), "{reply}");
    reply["result"].clone()
}

/// A client without real servers.
fn alone(servers: &Value) -> Client {
    Client::with(servers, |command| {
        command.args(["--toolset", "code-execution-mode"]);
    })
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("text")
}
