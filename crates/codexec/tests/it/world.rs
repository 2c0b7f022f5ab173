//! Real servers that nobody here wrote, called from TypeScript.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::startup::wait_until_ready;
use crate::support::{Client, world};

/// The servers, and the folder that one of them gives access to.
pub(crate) struct World {
    world: PathBuf,
    pub(crate) servers: Value,
    pub(crate) folder: TempDir,
}

impl World {
    /// Nothing when the servers are not installed.
    pub(crate) fn find() -> Option<World> {
        let world = world()?;
        let folder = tempfile::tempdir().expect("a directory");
        let servers = json!({
            "everything": node(&world, "mcp-server-everything", &[]),
            "filesystem": node(&world, "mcp-server-filesystem", &[folder.path()]),
            "time": {
                "command": world.join("venv/bin/mcp-server-time"),
                "args": ["--local-timezone", "UTC"],
            },
        });
        Some(World { world, servers, folder })
    }

    /// A virtual environment with numpy, pandas, matplotlib and Pillow.
    pub(crate) fn venv(&self) -> PathBuf {
        self.world.join("venv")
    }

    /// Where npm has put its packages.
    pub(crate) fn modules(&self) -> PathBuf {
        self.world.join("npm/node_modules")
    }

    /// A client, once all servers run: discovery does not wait long for a slow machine.
    pub(crate) fn client(&self) -> Client {
        self.client_with(|_| {})
    }

    pub(crate) fn client_with(&self, change: impl FnOnce(&mut Command)) -> Client {
        let mut client = Client::with(&self.servers, change);
        let code = "await Promise.all([
            tools.everything.echo({ message: '' }),
            tools.filesystem.list_allowed_directories(),
            tools.time.get_current_time({ timezone: 'UTC' }),
        ]); return 'all run';";
        assert_eq!(client.run(code).fine(), "all run");
        client
    }
}

fn node(world: &Path, server: &str, args: &[&Path]) -> Value {
    let bin = world.join("npm/node_modules/.bin");
    let server = bin.join(server);
    let args: Vec<&Path> = std::iter::once(server.as_path()).chain(args.iter().copied()).collect();
    json!({"command": bin.join("node"), "args": args})
}

/// What code gives, as JSON.
#[track_caller]
pub(crate) fn value(client: &mut Client, code: &str) -> Value {
    value_of(client, &json!({"code": code}))
}

#[track_caller]
fn value_of(client: &mut Client, arguments: &Value) -> Value {
    let text = client.call("execute_code", arguments).fine();
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// Gives the error's parts instead of throwing.
const CAUGHT: &str = "const caught = async (call) => {
    try { return await call(); } catch (error) {
        if (!(error instanceof ToolError)) throw error;
        const { code, server, tool, message } = error;
        return [code, server ?? null, tool ?? null, message];
    }
};\n";

/// What each of these calls throws.
#[track_caller]
fn check_thrown(client: &mut Client, calls: &[(&str, Value)]) {
    for (call, expected) in calls {
        let code = format!("{CAUGHT}return await caught(() => {call});");
        assert_eq!(value(client, &code), *expected, "{call}");
    }
}

#[test]
fn an_unknown_name_fails_with_the_nearest_real_ones() {
    let Some(world) = World::find() else { return };
    let on_time = |tool: &str, near: &str| {
        json!([
            "TOOL_NOT_FOUND",
            "time",
            tool,
            format!("no tool {tool:?} on server \"time\"; did you mean {near}?")
        ])
    };
    let nowhere = |message: &str| json!(["TOOL_NOT_FOUND", null, null, message]);
    check_thrown(
        &mut world.client(),
        &[
            ("tools.time.convert_tme({})", on_time("convert_tme", "convert_time")),
            (
                "callTool('time', 'get_curent_time', {})",
                on_time("get_curent_time", "get_current_time"),
            ),
            ("callMCPTool('mcp__time__convert_tim', {})", on_time("convert_tim", "convert_time")),
            ("tools.tim.convert_time({})", nowhere("no server \"tim\"; did you mean time?")),
            (
                "callMCPTool('get_curent_time', {})",
                nowhere("no tool \"get_curent_time\"; did you mean time.get_current_time?"),
            ),
        ],
    );
}

#[test]
fn wrong_arguments_are_refused_with_the_field_and_what_is_allowed() {
    let Some(world) = World::find() else { return };
    let wrong = |server: &str, tool: &str, message: &str| {
        json!(["INVALID_ARGS", server, tool, format!("{server}.{tool}{message}")])
    };
    let parameters = "parameters: source_timezone (required), time (required), \
                      target_timezone (required)";
    check_thrown(
        &mut world.client(),
        &[
            (
                "tools.time.convert_time({ source_timezone: 'UTC', time: '12:00' })",
                wrong(
                    "time",
                    "convert_time",
                    &format!(": `target_timezone` is missing; {parameters}"),
                ),
            ),
            (
                "tools.time.convert_time({ source_timezone: 5, time: '', target_timezone: 'UTC' })",
                wrong(
                    "time",
                    "convert_time",
                    &format!(": `source_timezone`: 5 is not of type \"string\"; {parameters}"),
                ),
            ),
            (
                "tools.everything['get-structured-content']({ location: 'Rome' })",
                wrong(
                    "everything",
                    "get-structured-content",
                    ": `location` must be one of [\"New York\",\"Chicago\",\"Los Angeles\"]; \
                     parameters: location (required)",
                ),
            ),
            (
                "tools.everything.echo('hello')",
                wrong(
                    "everything",
                    "echo",
                    " takes one object of named arguments, like {id: 1}; it was given a string",
                ),
            ),
        ],
    );
}

#[test]
fn results_are_unwrapped_and_images_stay_objects() {
    let Some(world) = World::find() else { return };
    let code = "
        const image = await tools.everything.get_tiny_image();
        const { data, ...kept } = image.find((block) => block.type === 'image');
        const structured = await tools.everything['get-structured-content']({ location: 'Chicago' });
        return {
            text: await tools.everything.echo({ message: 'hello' }),
            json: await tools.everything.echo({ message: '{}' }),
            structured: Object.entries(structured).map(([name, value]) => [name, typeof value]),
            image: { ...kept, isPng: atob(data).startsWith('\\x89PNG') },
            blocks: image.map((block) => block.type),
        };";
    assert_eq!(
        value(&mut world.client(), code),
        json!({
            "text": "Echo: hello",
            "json": "Echo: {}",
            "structured": [["temperature", "number"], ["conditions", "string"], ["humidity", "number"]],
            "image": {"type": "image", "mimeType": "image/png", "isPng": true},
            "blocks": ["text", "image", "text"],
        })
    );
}

#[test]
fn images_that_code_returns_or_emits_are_images_of_the_reply() {
    let Some(world) = World::find() else { return };
    let mut client = world.client();
    let programs = [
        ("typescript", "return await tools.everything.get_tiny_image()"),
        ("typescript", "emit(await tools.everything.get_tiny_image())"),
        ("node", "emit(await tools.everything.get_tiny_image())"),
        ("python", "await tools.everything.get_tiny_image()"),
    ];
    for (language, code) in programs {
        let call =
            json!({"name": "execute_code", "arguments": {"language": language, "code": code}});
        let content = client.request("tools/call", &call)["result"]["content"].clone();
        let blocks = content.as_array().expect("content");
        let kinds: Vec<_> = blocks.iter().filter_map(|block| block["type"].as_str()).collect();
        assert_eq!(kinds, ["text", "image"], "{language}: {content}");
        assert_eq!(content[1]["mimeType"], "image/png", "{language}: {content}");
        let text = content[0]["text"].as_str().expect("text");
        assert!(text.len() < 600 && !text.contains("iVBORw0KGgo"), "{language}: {text}");
    }
}

#[test]
fn a_request_can_only_narrow_what_may_be_called() {
    let Some(world) = World::find() else { return };
    let mut client = world.client();
    let code = format!(
        "{CAUGHT}const codeOf = async (call) => {{
            const found = await caught(call);
            return Array.isArray(found) ? found[0] : 'fine';
        }};
        return [
            Object.keys(tools).join(' '),
            (await discoverMCPTools()).map((tool) => tool.server)
                .filter((server, index, all) => all.indexOf(server) === index).join(' '),
            await codeOf(() => tools.time.get_current_time({{ timezone: 'UTC' }})),
            await codeOf(() => tools.everything.echo({{ message: 'x' }})),
            await codeOf(() => tools.everything.get_sum({{ a: 1, b: 2 }})),
        ];"
    );
    let (fine, no_server, no_tool) = ("fine", "SERVER_NOT_ALLOWED", "TOOL_NOT_ALLOWED");
    let mut check = |narrowed: Value, expected: [&str; 5]| {
        let mut arguments = json!({"code": code});
        for (field, list) in narrowed.as_object().expect("an object") {
            arguments[field] = list.clone();
        }
        assert_eq!(value_of(&mut client, &arguments), json!(expected), "{narrowed}");
    };
    let all = "everything filesystem time";
    check(json!({}), [all, all, fine, fine, fine]);
    check(json!({"allowed_tools": ["*"]}), [all, all, fine, fine, fine]);
    check(json!({"allowed_tools": []}), ["", "", no_server, no_server, no_server]);
    check(json!({"allowed_servers": []}), ["", "", no_server, no_server, no_server]);
    check(json!({"allowed_tools": ["time.*"]}), ["time", "time", fine, no_server, no_server]);
    check(
        json!({"allowed_tools": ["mcp__everything__*"]}),
        ["everything", "everything", no_server, fine, fine],
    );
    check(
        json!({"allowed_tools": ["everything.e*", "time.get_current_time"]}),
        ["everything time", "everything time", fine, fine, no_tool],
    );
    check(
        json!({"allowed_tools": ["mcp__everything__get-sum"]}),
        ["everything", "everything", no_server, no_tool, fine],
    );
    check(json!({"allowed_servers": ["time"]}), ["time", "time", fine, no_server, no_server]);
    check(
        json!({"allowed_tools": ["everything.*"], "allowed_servers": ["time"]}),
        ["", "", no_server, no_server, no_server],
    );
}

#[test]
fn more_tool_calls_than_asked_for_end_the_execution() {
    let Some(world) = World::find() else { return };
    let mut client = world.client();
    let code = "for (const n of [1, 2, 3]) await tools.everything.echo({ message: String(n) });";
    let mut call =
        |most: u32| client.call("execute_code", &json!({"code": code, "max_tool_calls": most}));
    assert_eq!(call(3).fine(), "null");
    assert_eq!(
        call(2).failed(),
        "MAX_TOOL_CALLS_EXCEEDED: stopped: more than 2 tool calls in one execution"
    );
}

#[test]
fn search_tools_names_the_server_in_every_detail() {
    let Some(world) = World::find() else { return };
    let mut client = world.client();
    let mut search = |detail: Value| {
        let query = json!({"query": "current time in a timezone", "limit": 1, "detail": detail});
        client.call("search_tools", &query).fine()
    };
    let summary = "time.get_current_time(args: { timezone: string }): Promise<{ timezone: string; \
                   datetime: string; day_of_week: string; is_dst: boolean }> // Get current time \
                   in a specific timezone";
    assert_eq!(search(json!("names")), "time.get_current_time");
    assert_eq!(search(json!("summary")), summary);
    assert_eq!(search(json!(null)), summary);
    let full = search(json!("full"));
    let lines: Vec<&str> = full.lines().collect();
    assert_eq!(lines.len(), 3, "{full}");
    assert_eq!(lines[0], summary);
    let schema = |line: &str, kind: &str| -> Value {
        let text = line.strip_prefix(&format!("  {kind} ")).expect("a schema");
        serde_json::from_str(text).expect("JSON")
    };
    assert_eq!(schema(lines[1], "input")["required"], json!(["timezone"]));
    assert_eq!(schema(lines[2], "output")["type"], "object");
}

#[test]
fn search_tools_keeps_to_its_limit_its_server_and_its_budget() {
    let Some(world) = World::find() else { return };
    let mut client = world.client();
    let mut names = |query: Value| -> Vec<String> {
        let mut query = query;
        query["detail"] = json!("names");
        client.call("search_tools", &query).fine().lines().map(str::to_owned).collect()
    };
    assert_eq!(names(json!({"query": "file", "limit": 3})).len(), 3);
    let all = names(json!({"query": "", "server": "time"}));
    assert_eq!(all, ["time.get_current_time", "time.convert_time"]);
    assert_eq!(names(json!({"query": "read file", "limit": 1, "server": "filesystem"})).len(), 1);
    assert_eq!(names(json!({"query": "zzzqqq"})), ["no tool matches; try other words"]);
    let full = client.call("search_tools", &json!({"query": "", "limit": 100, "detail": "full"}));
    let full = full.fine();
    assert!(full.chars().count() <= 10_000, "{}", full.chars().count());
    let last = full.lines().last().unwrap_or_default();
    assert!(last.ends_with(" more left out; ask for less detail or fewer]"), "{last}");
}

#[test]
fn health_lists_the_servers_and_what_is_wrong_with_them() {
    let Some(world) = World::find() else { return };
    let mut servers = world.servers.clone();
    servers["broken"] = json!({"command": "/nowhere/mcp-server"});
    servers["off"] = json!({"command": "/nowhere/mcp-server", "disabled": true});
    let mut client = Client::start(&servers);
    wait_until_ready(&mut client, &["everything", "filesystem", "time"]);
    client.run("await tools.time.get_current_time({ timezone: 'UTC' })").fine();
    client.run("await tools.broken.x()").failed();
    let text = client.call("health", &json!({})).fine();
    let health: Value = serde_json::from_str(&text).expect("JSON");
    let rows: Vec<Value> = health["servers"]
        .as_array()
        .expect("servers")
        .iter()
        .map(|server| json!([server["name"], server["state"], server["tools"], server["calls"]]))
        .collect();
    assert_eq!(
        json!(rows),
        json!([
            ["everything", "ready", 15, 0],
            ["filesystem", "ready", 14, 0],
            ["time", "ready", 2, 1],
            ["broken", "failed", null, 0],
            ["off", "disabled", null, null],
        ])
    );
    assert_eq!(health["healthy"], false, "{text}");
    let wrong = "server broken: it did not start: \"/nowhere/mcp-server\" was not found; install \
                 it, or write its whole path";
    assert_eq!(health["unhealthy"], json!([wrong]), "{text}");
    let disabled = "server \"off\" is disabled; the user can enable it with `codexec servers enable \
                    off`";
    check_thrown(
        &mut client,
        &[("tools.off.x()", json!(["TOOL_NOT_FOUND", null, null, disabled]))],
    );
    let named = client.run("await callMCPTool('mcp__off__x', {})").failed();
    assert!(named.contains(disabled), "{named}");
}

/// A note says what code may have overlooked.
#[test]
fn a_schema_that_is_not_known_is_null() {
    let Some(world) = World::find() else { return };
    let reply = world.client().run("getToolSchema('time.convert_tim')").fine();
    let expected = "[discovery]\nthe schema of \"time.convert_tim\" is null: no tool \
                    \"convert_tim\" on server \"time\"; did you mean convert_time?";
    assert_eq!(reply, expected);
}
