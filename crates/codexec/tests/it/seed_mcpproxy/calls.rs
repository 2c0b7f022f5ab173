//! `retrieve_tools` and `call_tool`: one tool found, one tool called.

use serde_json::{Value, json};

use super::{client, fill, run};
use crate::attacks::recorder::Recorders;
use crate::support::{Client, keep_settings};
use crate::world::World;

fn retrieve_tools(client: &mut Client, arguments: &Value) -> Value {
    let text = client.call("retrieve_tools", arguments).fine();
    assert!(text.chars().count() <= 10_000, "{}", text.chars().count());
    serde_json::from_str(&text).expect("JSON")
}

fn names(found: &Value) -> Vec<&str> {
    let tools = found["tools"].as_array().expect("a list");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

#[test]
fn tools_are_found_by_words() {
    let Some(world) = World::find() else { return };
    let mut client = client(&world.servers);
    // Every server is up before anything is said of what there is.
    run(
        &mut client,
        &json!({"code": "call_tools(['everything', 'filesystem', 'time'].map(server => ({server, tool: 'none'})))"}),
    );
    let best =
        retrieve_tools(&mut client, &json!({"query": "convert a time between zones", "limit": 1}));
    assert_eq!(names(&best), ["time:convert_time"]);
    let tool = &best["tools"][0];
    let keys: Vec<&String> = tool.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["name", "server", "description", "inputSchema"]);
    let required = &tool["inputSchema"]["required"];
    assert_eq!(*required, json!(["source_timezone", "time", "target_timezone"]));
    let asked = json!({"query": "convert a time", "limit": 1, "detail": "compact"});
    let compact = retrieve_tools(&mut client, &asked);
    let keys: Vec<&String> = compact["tools"][0].as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["name", "server", "description", "signature"]);
    let here =
        retrieve_tools(&mut client, &json!({"query": "file", "server": "filesystem", "limit": 3}));
    assert!(names(&here).iter().all(|name| name.starts_with("filesystem:")), "{here}");
    let all = json!({"query": "", "server": "filesystem", "detail": "names", "limit": 100});
    let all = retrieve_tools(&mut client, &all);
    assert!(names(&all).contains(&"filesystem:write_file"), "{all}");
    let reads = json!({"query": "", "server": "filesystem", "detail": "names", "limit": 100, "read_only_only": true});
    let reads = retrieve_tools(&mut client, &reads);
    assert!(names(&reads).contains(&"filesystem:read_text_file"), "{reads}");
    assert!(!names(&reads).contains(&"filesystem:create_directory"), "{reads}");
    let safe = json!({"query": "", "server": "filesystem", "detail": "names", "limit": 100, "exclude_destructive": true});
    let safe = retrieve_tools(&mut client, &safe);
    assert!(names(&safe).contains(&"filesystem:create_directory"), "{safe}");
    assert!(!names(&safe).contains(&"filesystem:write_file"), "{safe}");
    // 15 by default, of more than thirty.
    let many = retrieve_tools(&mut client, &json!({"query": "", "detail": "names"}));
    assert_eq!((names(&many).len(), &many["total"]), (15, &json!(15)), "{many}");
    let long = retrieve_tools(&mut client, &json!({"query": "", "detail": "full", "limit": 100}));
    let left_out = long["left_out"].as_str().expect("too many for one answer");
    assert!(left_out.ends_with("more; ask for less detail or fewer"), "{left_out}");
}

#[test]
fn a_search_says_what_it_does_not_take() {
    let mut client = client(&json!({}));
    let mut refused = |arguments: Value| client.call("retrieve_tools", &arguments).failed();
    assert_eq!(refused(json!({})), "INVALID_ARGS: query: it is missing; it must be a string");
    assert_eq!(
        refused(json!({"query": "a", "limit": 101})),
        "INVALID_ARGS: limit: 101 is not allowed; it must be a whole number from 1 to 100"
    );
    assert_eq!(
        refused(json!({"query": "a", "detail": "all"})),
        "INVALID_ARGS: detail: \"all\" is not allowed; it must be one of full, compact, summary, names"
    );
    assert_eq!(
        refused(json!({"query": "a", "explain_tool": "x"})),
        "INVALID_ARGS: explain_tool: unknown; allowed fields: query, limit, detail, server, \
         read_only_only, exclude_destructive"
    );
}

#[test]
fn a_tool_is_called_by_any_of_its_names() {
    let Some(world) = World::find() else { return };
    fill(&world);
    let mut client = client(&world.servers);
    let mut echo = |tool: &str, arguments: Value| client.call(tool, &arguments).fine();
    let hi = json!({"message": "hi"});
    for name in ["everything:echo", "everything__echo", "mcp__everything__echo", "everything.echo"]
    {
        assert_eq!(echo("call_tool", json!({"name": name, "args": hi})), "Echo: hi", "{name}");
    }
    let text = json!({"name": "everything:echo", "args_json": "{\"message\": \"hi\"}"});
    assert_eq!(echo("call_tool", text.clone()), "Echo: hi");
    assert_eq!(echo("call_tool_read", text.clone()), "Echo: hi");
    let intent =
        json!({"operation_type": "read", "data_sensitivity": "public", "reason": "to see"});
    let intended = json!({"name": "everything:echo", "args": hi, "intent": intent});
    assert_eq!(echo("call_tool_read", intended), "Echo: hi");
    // As it came: structured content and every block.
    let call = json!({"name": "call_tool", "arguments": {
        "name": "everything:get-structured-content", "args": {"location": "Chicago"},
    }});
    let result = client.request("tools/call", &call)["result"].clone();
    assert!(result["structuredContent"]["temperature"].is_number(), "{result}");
    assert_eq!(result["content"][0]["type"], "text", "{result}");
    let call = json!({"name": "call_tool", "arguments": {"name": "everything:get-tiny-image"}});
    let result = client.request("tools/call", &call)["result"].clone();
    let kinds = result["content"].as_array().expect("blocks").iter();
    assert!(kinds.clone().any(|block| block["type"] == "image"), "{result}");
}

#[test]
fn a_call_that_fails_says_why() {
    let Some(world) = World::find() else { return };
    let mut client = client(&world.servers);
    let mut failed = |arguments: Value| client.call("call_tool", &arguments).failed();
    // The server's own words.
    let missing = world.folder.path().join("nobody.json");
    let said = failed(json!({"name": "filesystem:read_text_file", "args": {"path": missing}}));
    assert!(said.contains("no such file"), "{said}");
    assert_eq!(
        failed(json!({"name": "time:convert_tim"})),
        "TOOL_NOT_FOUND: no tool \"convert_tim\" on server \"time\"; did you mean convert_time?"
    );
    let wrong = failed(json!({"name": "everything:echo", "args": {}}));
    assert!(wrong.starts_with("INVALID_ARGS: everything.echo: `message` is missing"), "{wrong}");
    assert_eq!(
        failed(json!({"name": "everything:echo", "args": {}, "args_json": "{}"})),
        "INVALID_ARGS: args, args_json: both are given; give one"
    );
    assert_eq!(
        failed(json!({"name": "everything:echo", "arguments": {}})),
        "INVALID_ARGS: arguments: unknown; allowed fields: name, args, args_json, intent"
    );
}

/// Quarantine and policy hold on every way to a tool.
#[test]
fn what_may_not_be_called_is_not_called() {
    let folder = tempfile::tempdir().expect("a directory");
    let recorders = Recorders::new(folder.path());
    let tool =
        |name: &str| json!({"name": name, "description": "d", "inputSchema": {"type": "object"}});
    let tools = json!({"tools": [tool("get"), tool("put")]});
    let servers = json!({
        "held": recorders.entry("held", &tools),
        "open": recorders.entry("open", &tools),
        "off": {"command": "false", "disabled": true},
    });
    let mut client = Client::with(&servers, |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        let settings = "[tools]\nallowed = [\"held.*\", \"open.get\", \"off.*\"]\n\
                        [servers.held]\ntrust = \"manual\"\n";
        keep_settings(&home, settings);
        command.args(["--toolset", "mcpproxy"]);
    });
    let code = "[['held', 'get'], ['open', 'put'], ['off', 'get'], ['open', 'get']]
        .map(([server, tool]) => call_tool(server, tool, {}).error?.code ?? 'called')";
    let said = run(&mut client, &json!({"code": code}));
    let expected = json!(["TOOL_QUARANTINED", "TOOL_NOT_ALLOWED", "TOOL_NOT_FOUND", "called"]);
    assert_eq!(said.value["value"], expected, "{said:?}");
    for (name, code) in [("held:get", "TOOL_QUARANTINED"), ("open:put", "TOOL_NOT_ALLOWED")] {
        let said = client.call("call_tool", &json!({"name": name})).failed();
        assert!(said.starts_with(&format!("{code}: ")), "{said}");
    }
    let listed = retrieve_tools(&mut client, &json!({"query": "", "detail": "names"}));
    assert_eq!(names(&listed), ["open:get"], "{listed}");
    assert_eq!(recorders.calls("held", None), []);
    assert_eq!(recorders.calls("open", Some("put")), []);
}
