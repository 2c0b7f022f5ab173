//! How a server begins and ends: at once, whatever its upstreams do, and without a trace.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::support::{Client, PATIENCE, codexec, descendants, keep_settings, within};

const UPSTREAM: &str = include_str!("startup/upstream.py");
const HANG: &str = include_str!("startup/hang.py");

/// An interpreter that every user can start.
pub(crate) fn python() -> String {
    let world = std::env::var_os("CODEXEC_WORLD").map(std::path::PathBuf::from);
    world.map_or_else(
        || "python3".to_owned(),
        |world| world.join("venv/bin/python").display().to_string(),
    )
}

/// The entry of an upstream with the tool `who`, which tells these words.
pub(crate) fn upstream(words: &[&str]) -> Value {
    let args: Vec<&str> = ["-c", UPSTREAM].into_iter().chain(words.iter().copied()).collect();
    json!({"command": python(), "args": args})
}

/// Eight that work, one that hangs, one that is not there.
fn ten() -> Value {
    let mut servers = Map::new();
    for index in 0..8 {
        let name = format!("s{index}");
        servers.insert(name.clone(), upstream(&[&name]));
    }
    servers.insert("hung".to_owned(), json!({"command": python(), "args": ["-c", HANG, "hung"]}));
    servers.insert("missing".to_owned(), json!({"command": "/nowhere/mcp-server"}));
    Value::Object(servers)
}

/// The last word of the command line of every process that is not codexec itself.
pub(crate) fn upstreams_of(client: &Client) -> Vec<(u32, String)> {
    let words = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line)
            .split_terminator('\0')
            .map(str::to_owned)
            .collect::<Vec<String>>()
    };
    let mut found: Vec<(u32, String)> = descendants(client.child.id())
        .into_iter()
        .filter_map(|pid| {
            let words = words(pid);
            let is_upstream = words.iter().any(|word| word.ends_with(UPSTREAM) || word == HANG);
            // Above each there is one of ours, with the same words behind this one.
            let is_supervisor = words.get(1).is_some_and(|word| word == "supervisor");
            (is_upstream && !is_supervisor)
                .then(|| (pid, words.last().cloned().unwrap_or_default()))
        })
        .collect();
    found.sort_by(|a, b| a.1.cmp(&b.1));
    found
}

fn names(upstreams: &[(u32, String)]) -> Vec<&str> {
    upstreams.iter().map(|(_, name)| name.as_str()).collect()
}

/// Waits until there is nothing left of them.
#[track_caller]
pub(crate) fn check_gone(upstreams: &[(u32, String)]) {
    let is_there = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, after)| after.chars().next());
        // One that nobody has reaped yet is gone all the same.
        state.is_some_and(|state| state != 'Z')
    };
    let mut left = None;
    let is_gone = within(PATIENCE, || {
        left = upstreams.iter().find(|(pid, _)| is_there(*pid));
        left.is_none()
    });
    assert!(is_gone, "still there: {left:?}");
}

/// What `tools.<server>.who()` gives, as JSON.
fn who(client: &mut Client, server: &str) -> Value {
    let text = client.run(&format!("return await tools[{server:?}].who()")).fine();
    serde_json::from_str(&text).expect("JSON")
}

/// Waits until all these upstreams have a process, and returns every one that has.
fn wait_for_upstreams(client: &Client, wanted: &[&str]) -> Vec<(u32, String)> {
    let mut upstreams = Vec::new();
    let are_there = within(PATIENCE, || {
        upstreams = upstreams_of(client);
        wanted.iter().all(|name| names(&upstreams).contains(name))
    });
    assert!(are_there, "{upstreams:?}");
    upstreams
}

/// Waits until `health` says that these servers are ready.
pub(crate) fn wait_until_ready(client: &mut Client, servers: &[&str]) {
    let mut health = String::new();
    let are_ready = within(PATIENCE, || {
        health = client.call("health", &json!({})).fine();
        let parsed: Value = serde_json::from_str(&health).expect("JSON");
        let all = parsed["servers"].as_array().expect("servers");
        let is_ready = |name: &&str| {
            all.iter().any(|server| server["name"] == **name && server["state"] == "ready")
        };
        servers.iter().all(is_ready)
    });
    assert!(are_ready, "{health}");
}

const EIGHT: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

#[test]
fn servers_without_a_list_start_when_a_client_connects_and_the_others_when_needed() {
    let mut client = Client::start(&ten());
    wait_until_ready(&mut client, &EIGHT);
    client.restart(|_| {});
    client.request("tools/list", &json!({}));
    client.ping();
    assert_eq!(client.run("Object.keys(tools).length").fine(), "10");
    let mut started = upstreams_of(&client);
    started.retain(|(_, name)| name != "hung");
    assert_eq!(started, []);
    assert_eq!(who(&mut client, "s3")["name"], "s3");
    wait_for_upstreams(&client, &["s3"]);
}

#[test]
fn a_hung_server_and_a_missing_one_hold_nobody_up() {
    let mut client = Client::start(&ten());
    let hung = client.send_call("execute_code", &json!({"code": "await tools.hung.who()"}));
    assert_eq!(who(&mut client, "s0")["name"], "s0");
    let missing = client.run("await tools.missing.who()").failed();
    let missing = missing.lines().next().unwrap_or_default();
    let start = "UPSTREAM_ERROR: server \"missing\": it ";
    let reason = "\"/nowhere/mcp-server\" was not found; install it, or write its whole path";
    assert!(missing.starts_with(start) && missing.contains(reason), "{missing}");
    client.ping();
    let is_answered = client.others.iter().any(|message| message["id"] == hung);
    assert!(!is_answered, "a server that never answers has answered");
    wait_for_upstreams(&client, &["hung", "s0"]);
}

/// Also the ones that were started in the background.
#[test]
fn upstreams_are_gone_after_the_client_left() {
    let mut client = Client::start(&ten());
    client.send_call("execute_code", &json!({"code": "await tools.hung.who()"}));
    wait_until_ready(&mut client, &EIGHT);
    let upstreams = wait_for_upstreams(&client, &["hung", "s0", "s1"]);
    assert_eq!(client.leave().code(), Some(0), "{}", client.stderr());
    check_gone(&upstreams);
}

/// Also the one that would never notice that nobody is left.
#[test]
fn upstreams_are_gone_after_the_server_was_killed() {
    let mut client = Client::start(&ten());
    client.send_call("execute_code", &json!({"code": "await tools.hung.who()"}));
    who(&mut client, "s0");
    let upstreams = wait_for_upstreams(&client, &["hung", "s0"]);
    client.child.kill().expect("killed");
    client.child.wait().expect("reaped");
    check_gone(&upstreams);
}

#[test]
fn the_list_of_tools_is_small_and_always_the_same() {
    let list = |servers: &Value| {
        Client::start(servers).request("tools/list", &json!({}))["result"].clone()
    };
    let tools = list(&json!({}));
    assert_eq!(tools, list(&ten()));
    let tokens = tools.to_string().chars().count().div_ceil(4);
    assert!(tokens <= 450, "{tokens}");
    let about: Vec<Value> = tools["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| {
            assert!(tool["description"].as_str().is_some_and(|text| text.len() < 2_048), "{tool}");
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            json!([tool["name"], tool["annotations"], tool["_meta"]])
        })
        .collect();
    let meta = json!({"anthropic/alwaysLoad": true});
    assert_eq!(
        json!(about),
        json!([
            ["execute_code", {"title": "Run code", "destructiveHint": true, "openWorldHint": true}, meta],
            ["search_tools", {"title": "Search tools", "readOnlyHint": true, "openWorldHint": false}, meta],
            ["health", {"title": "Health", "readOnlyHint": true, "openWorldHint": false}, meta],
        ])
    );
    let fields = |tool: usize| -> Vec<String> {
        let schema = &tools["tools"][tool]["inputSchema"];
        schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect()
    };
    assert_eq!(
        fields(0),
        [
            "code",
            "language",
            "script",
            "session",
            "input",
            "working_dir",
            "timeout_ms",
            "allowed_tools",
            "allowed_servers",
            "max_tool_calls"
        ]
    );
    assert_eq!(fields(1), ["query", "limit", "detail", "server", "kind"]);
    assert_eq!(fields(2), Vec::<String>::new());
}

/// The whole answer to `initialize`.
fn hello(servers: &Value, version: &str) -> Value {
    let hello = json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "it", "version": "0"},
    });
    Client::raw(servers, |_| {}).request("initialize", &hello)["result"].clone()
}

#[test]
fn the_instructions_name_the_servers_and_stay_under_two_kilobytes() {
    let instructions = |servers: &Value| {
        let text = hello(servers, "2025-11-25")["instructions"].clone();
        text.as_str().expect("instructions").to_owned()
    };
    let few = instructions(&ten());
    assert_eq!(few.lines().last(), Some("Servers: s0, s1, s2, s3, s4, s5, s6, s7, hung, missing."));
    let many: Map<String, Value> =
        (0..400).map(|index| (format!("server-number-{index}"), upstream(&["x"]))).collect();
    let many = instructions(&Value::Object(many));
    assert!(many.len() < 2_048, "{}", many.len());
    assert!(many.ends_with(" more (Object.keys(tools))"), "{many}");
}

#[test]
fn every_revision_with_a_handshake_is_spoken() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut hello = hello(&json!({}), version);
        hello.as_object_mut().expect("an object").shift_remove("instructions");
        assert_eq!(
            hello,
            json!({
                "protocolVersion": version,
                "capabilities": {"resources": {}, "tools": {}},
                "serverInfo": {
                    "name": "codexec", "title": "codexec", "version": env!("CARGO_PKG_VERSION"),
                },
            })
        );
    }
    // An unknown one, and the one that has no handshake, get the newest that has.
    for version in ["1999-01-01", "2026-07-28", "x"] {
        assert_eq!(hello(&json!({}), version)["protocolVersion"], "2025-11-25", "{version}");
    }
}

/// What every request of the era without a handshake carries.
fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn the_era_without_a_handshake_is_spoken() {
    let mut client = Client::raw(&json!({"s0": upstream(&["s0"])}), |_| {});
    let meta = meta("2026-07-28");
    let discovered = client.request("server/discover", &json!({"_meta": meta}))["result"].clone();
    let instructions = discovered["instructions"].as_str().and_then(|text| text.lines().last());
    assert_eq!(instructions, Some("Servers: s0."));
    let versions = discovered["supportedVersions"].as_array().expect("versions");
    assert!(versions.contains(&json!("2026-07-28")), "{versions:?}");
    assert_eq!(discovered["resultType"], "complete");

    let mut listed = client.request("tools/list", &json!({"_meta": meta}))["result"].clone();
    let tools = listed.as_object_mut().expect("an object").shift_remove("tools");
    let names: Vec<Value> = tools
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, ["execute_code", "search_tools", "health"]);
    assert_eq!(listed["resultType"], "complete");
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"].is_string(), "{listed}");

    let code = "(await tools.s0.who()).name";
    let call = json!({"_meta": meta, "name": "execute_code", "arguments": {"code": code}});
    let mut called = client.request("tools/call", &call)["result"].clone();
    called.as_object_mut().expect("an object").shift_remove("_meta");
    assert_eq!(
        called,
        json!({
            "resultType": "complete",
            "content": [{"type": "text", "text": "s0"}],
            "isError": false,
        })
    );
}

#[test]
fn the_era_without_a_handshake_refuses_what_it_does_not_know() {
    let mut client = Client::raw(&json!({}), |_| {});
    client.request("server/discover", &json!({"_meta": meta("2026-07-28")}));
    let error = |reply: Value| reply["error"].clone();
    let newer = error(client.request("tools/list", &json!({"_meta": meta("2031-01-01")})));
    assert_eq!(newer["code"], -32_022, "{newer}");
    assert_eq!(newer["data"]["requested"], "2031-01-01", "{newer}");
    let bare = error(client.request("tools/list", &json!({})));
    assert_eq!(bare["code"], -32_602, "{bare}");
    let listed = client.request("tools/list", &json!({"_meta": meta("2026-07-28")}));
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(3));
}

#[test]
fn ping_is_answered_before_and_after_the_handshake() {
    let mut client = Client::raw(&ten(), |_| {});
    client.ping();
    client.write_bytes(b"{not json\n");
    assert_eq!(client.next_message()["error"]["code"], -32_700);
    client.ping();
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "it", "version": "0"},
    });
    let reply = client.request("initialize", &hello);
    assert_eq!(reply["result"]["protocolVersion"], "2025-11-25");
    client.ping();
}

/// The client's reader fails on any line of ours that is not JSON-RPC.
#[test]
fn garbage_of_an_upstream_does_not_reach_our_standard_output() {
    let mut client = Client::start(&json!({"garbage": upstream(&["garbage"])}));
    assert_eq!(who(&mut client, "garbage")["name"], "garbage");
    client.ping();
    assert_eq!(client.others, Vec::<Value>::new());
    assert_eq!(client.leave().code(), Some(0));
}

#[test]
fn an_entry_that_starts_codexec_is_skipped() {
    let mut client = Client::start(&json!({
        "me": {"command": codexec(), "args": ["serve"]},
        "me_by_name": {"command": "codexec"},
        "me_by_npx": {"command": "npx", "args": ["-y", "codexec@1.2"]},
        "off": {"command": "x", "disabled": true},
        "other": upstream(&["other"]),
    }));
    assert_eq!(client.run("Object.keys(tools)").fine(), r#"["other"]"#);
}

#[test]
fn variables_are_expanded() {
    let mut entry =
        upstream(&["who", "${TEST_SET}", "${TEST_SET:-x}", "a${TEST_UNSET:-b c}d", "$TEST_SET"]);
    entry["env"] = json!({"TEST_SEEN": "<${TEST_SET}>", "TEST_EMPTY": "${TEST_UNSET:-}"});
    let mut client = Client::with(&json!({"s0": entry}), |command| {
        command.env("TEST_SET", "here").env("TEST_SECRET", "not named, so not passed on");
        command.env_remove("TEST_UNSET");
    });
    let who = who(&mut client, "s0");
    assert_eq!(
        json!([who["args"], who["env"]]),
        json!([
            ["here", "here", "ab cd", "$TEST_SET"],
            {"TEST_SEEN": "<here>", "TEST_EMPTY": ""},
        ])
    );
}

/// A file that names these servers, each telling the file's name.
fn name_servers(folder: &Path, file: &str, servers: &[&str]) {
    let entries: Map<String, Value> =
        servers.iter().map(|name| ((*name).to_owned(), upstream(&[file]))).collect();
    let text = json!({"mcpServers": entries}).to_string();
    std::fs::write(folder.join(file), text).expect("written");
}

#[test]
fn the_nearer_file_wins() {
    let named = json!({"a": upstream(&["--mcp-config"])});
    let mut client = Client::with(&named, |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        name_servers(&home, ".claude.json", &["a", "b", "c", "d", "e"]);
        name_servers(&home, ".mcp.json", &["a", "b", "c", "d"]);
        keep_settings(&home, "[discovery]\nproject-servers = \"allow\"\n");
        name_servers(&home, "first.json", &["a", "b", "c"]);
        name_servers(&home, "second.json", &["a", "b"]);
        let paths = [home.join("first.json"), home.join("second.json")];
        command.env("MCP_CONFIG_PATH", std::env::join_paths(paths).expect("joined"));
    });
    let code = "const names = Object.keys(tools).sort();
        return Promise.all(names.map(async (name) => [name, (await tools[name].who()).name]));";
    let found: Value = serde_json::from_str(&client.run(code).fine()).expect("JSON");
    assert_eq!(
        found,
        json!([
            ["a", "--mcp-config"],
            ["b", "second.json"],
            ["c", "first.json"],
            ["d", ".mcp.json"],
            ["e", ".claude.json"],
        ])
    );
}

#[test]
fn the_project_in_claudes_file_wins_over_its_global_servers() {
    let mut client = Client::with(&json!({}), |command| {
        let home = command.get_current_dir().expect("set").canonicalize().expect("there");
        let file = json!({
            "mcpServers": {"a": upstream(&["global"]), "b": upstream(&["global"])},
            "projects": {
                home.display().to_string(): {"mcpServers": {"a": upstream(&["project"])}},
                "/elsewhere": {"mcpServers": {"b": upstream(&["elsewhere"])}},
            },
        });
        std::fs::write(home.join(".claude.json"), file.to_string()).expect("written");
    });
    let found = ["a", "b"].map(|server| who(&mut client, server)["name"].clone());
    assert_eq!(found, ["project", "global"]);
}
