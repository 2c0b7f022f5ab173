//! The servers that their files name.

use serde_json::{Value, json};

use super::*;
use crate::attacks::host::within;
use crate::startup::upstream;
use crate::support::PATIENCE;
use crate::world::World;

const PROXY: &str = ".mcpproxy/mcp_config.json";

fn named(name: &str, mut entry: Value, more: &Value) -> Value {
    entry["name"] = json!(name);
    for (key, value) in more.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    entry
}

/// Real servers, one of each kind that MCPProxy knows.
#[test]
fn mcpproxys_servers_are_called() {
    let Some(world) = World::find() else { return };
    let time = world.servers["time"].clone();
    let file = json!({
        "enable_code_execution": true,
        "mcpServers": [
            named("time", time.clone(), &json!({"protocol": "stdio", "enabled": true})),
            named("off", time.clone(), &json!({"enabled": false})),
            named("held", time.clone(), &json!({"quarantined": true})),
            named("narrow", time, &json!({"disabled_tools": ["get_current_time"]})),
        ],
    });
    let mut client = client("mcpproxy", &[], &[(PROXY, &file.to_string())]);
    let mut call = |server: &str, tool: &str| {
        let args =
            "{timezone: 'UTC', source_timezone: 'UTC', time: '10:00', target_timezone: 'UTC'}";
        let code = format!("call_tool('{server}', '{tool}', {args})");
        let said = client.call("code_execution", &json!({"code": code})).text;
        let value: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(value["ok"], true, "{said}");
        value["value"]["ok"].as_bool().expect("a truth")
    };
    assert!(call("time", "get_current_time"));
    assert!(!call("off", "get_current_time"));
    assert!(!call("held", "get_current_time"));
    assert!(!call("narrow", "get_current_time"));
    assert!(call("narrow", "convert_time"));
}

#[test]
fn each_file_is_read_with_its_toolset() {
    let entry = |name: &str| format!("{{\"mcpServers\": {{\"{name}\": {{\"command\": \"x\"}}}}}}");
    let home = Home::new(&[
        (PROXY, "{\"mcpServers\": [{\"name\": \"of-proxy\", \"command\": \"x\"}]}"),
        ("MCPs/one.json", &entry("of-folder")),
        ("MCPs/two.json", "{\"description\": \"no servers\"}"),
        ("MCPs/not.txt", &entry("not")),
        (".config/claude-code/mcp.json", &entry("of-claude")),
        (".code-executor.json", "{\"mcpConfigPath\": \"~/mine.json\"}"),
        ("mine.json", &entry("of-mine")),
        ("bridge.toml", "[mcpServers.of-variable]\ncommand = \"x\"\n"),
        ("list.json", "{\"mcpServers\": [{\"name\": \"of-list\", \"command\": \"x\"}]}"),
    ]);
    assert_eq!(home.list("compact", &[]), [""; 0]);
    assert_eq!(home.list("mcpproxy", &[]), ["of-proxy not checked mcpproxy"]);
    let folder = "of-folder not checked code-execution-mode";
    assert_eq!(home.list("code-execution-mode", &[]), [folder]);
    let executor = ["of-claude not checked code-executor", "of-mine not checked named"];
    assert_eq!(home.list("code-executor", &[]), executor);
    // Those that somebody names count with any.
    let variable = [("MCP_SERVERS_CONFIG", "bridge.toml"), ("MCP_CONFIG_PATH", "list.json")];
    let named = ["of-list not checked named", "of-variable not checked named"];
    assert_eq!(home.list("compact", &variable), named);
    // And nobody's files are looked at where that is said.
    assert_eq!(home.list("mcpproxy", &[("CODEXEC_DISCOVER", "0")]), [""; 0]);
    home.write("state/config.toml", "[discovery]\nenabled = false\n");
    assert_eq!(home.list("code-execution-mode", &[]), [""; 0]);
}

/// What we stand for is not started, unless the user says so.
#[test]
fn the_systems_themselves_are_left_out() {
    let file = json!({"mcpServers": {
        "runs-code": {"command": "npx", "args": ["-y", "code-executor-mcp"]},
        "proxy": {"command": "mcpproxy", "args": ["serve"]},
        "other": {"command": "x"},
    }});
    let home = Home::new(&[(".claude.json", &file.to_string())]);
    let states = |toolset: &str| -> Vec<String> {
        let list = home.list(toolset, &[]);
        list.iter().map(|line| line.replace(" claude-code", "")).collect()
    };
    let all = ["runs-code not checked", "proxy not checked", "other not checked"];
    assert_eq!(states("compact"), all);
    let one = ["runs-code disabled", "proxy not checked", "other not checked"];
    assert_eq!(states("code-executor"), one);
    let two = ["runs-code not checked", "proxy disabled", "other not checked"];
    assert_eq!(states("mcpproxy"), two);
    let said = home.fine(&["--toolset", "mcpproxy", "servers", "list", "--no-check"], &[]);
    let why = "codexec replaces it with the toolset mcpproxy; `codexec servers enable proxy` \
               enables it anyway";
    assert!(said.contains(why), "{said}");
    home.fine(&["servers", "enable", "proxy"], &[]);
    assert_eq!(states("mcpproxy"), all);
}

/// Their files are followed while we serve.
#[test]
fn a_server_that_is_added_there_is_found() {
    let servers = |names: &[&str]| {
        let entries: Vec<Value> =
            names.iter().map(|name| named(name, upstream(&[name]), &json!({}))).collect();
        json!({"mcpServers": entries, "enable_code_execution": true}).to_string()
    };
    let mut client = client("mcpproxy", &[], &[(PROXY, &servers(&["one"]))]);
    let has = |client: &mut Client, name: &str| {
        let code = format!("call_tool('{name}', 'who', {{}}).ok");
        let said = client.call("code_execution", &json!({"code": code})).text;
        serde_json::from_str::<Value>(&said).expect("JSON")["value"] == true
    };
    assert!(has(&mut client, "one"));
    assert!(!has(&mut client, "two"));
    let home = client.home.path().to_owned();
    write_file(&home, PROXY, &servers(&["one", "two"]));
    assert!(within(PATIENCE, || has(&mut client, "two")), "the new server is not found");
}

/// A bad entry hides no other, and a broken file keeps what it said.
#[test]
fn a_hostile_list_is_read_entry_by_entry() {
    let many: Vec<Value> =
        (0..1_200).map(|index| json!({"name": format!("s{index}"), "command": "x"})).collect();
    let mut entries = vec![
        json!({"command": "nameless"}),
        json!({"name": "../../etc", "command": "x"}),
        json!({"name": "locked", "command": "x", "env": {"T": "${keyring:token}"}}),
        json!([]),
    ];
    entries.extend(many);
    let home = Home::new(&[(PROXY, &json!({"mcpServers": entries}).to_string())]);
    let list = home.list("mcpproxy", &[]);
    let used = list.iter().filter(|line| line.contains("not checked")).count();
    assert!((990..=1_000).contains(&used), "{used}");
    let said = home.fine(&["--toolset", "mcpproxy", "servers", "list", "--no-check"], &[]);
    assert!(said.contains("${keyring:token} is in MCPProxy's own keyring"), "{said:.2000}");
}
