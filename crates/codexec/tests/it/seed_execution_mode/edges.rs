//! What a table of cases cannot say: what is left behind, what is long, what happens at once.

use serde_json::{Value, json};

use super::{Seed, alone, run, text};
use crate::support::descendants;

const MEETING: &str = include_str!("meeting.py");

#[test]
fn the_tool_is_listed_as_it_was() {
    let mut client = alone(&json!({}));
    let list = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    let tools = list.as_array().expect("tools");
    assert_eq!(tools.len(), 1, "{list}");
    assert_eq!(tools[0]["name"], "run_python");
    let schema = &tools[0]["inputSchema"];
    let kinds: Vec<(&str, &Value)> = ["code", "servers", "timeout"]
        .map(|name| (name, &schema["properties"][name]["type"]))
        .to_vec();
    let expected =
        [("code", &json!("string")), ("servers", &json!("array")), ("timeout", &json!("integer"))];
    assert_eq!(kinds, expected);
    assert_eq!(schema["required"], json!(["code"]));
    // No server and no tool is in it: it is as long for a thousand of them as for none.
    let servers = json!({"meeting": {"command": "python3", "args": ["-S", "-c", MEETING]}});
    let with_servers = alone(&servers).request("tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(with_servers, list);
}

#[test]
fn the_capabilities_are_a_resource() {
    const URI: &str = "resource://mcp-server-code-execution-mode/capabilities";
    let mut client = alone(&json!({}));
    let list = client.request("resources/list", &json!({}))["result"]["resources"].clone();
    assert_eq!(list[0]["uri"], URI, "{list}");
    assert_eq!(list[0]["name"], "code-execution-capabilities");
    let read = client.request("resources/read", &json!({"uri": URI}));
    let page = read["result"]["contents"][0]["text"].as_str().expect("a text").to_owned();
    let code = "from mcp import runtime\n[name for name in runtime.__all__ if not \
                name.endswith('_sync') and name != 'MCPError']";
    let names = run(&mut client, &json!({"code": code}))["structuredContent"]["result"].clone();
    let names = names.as_array().expect("names");
    assert!(names.len() > 8, "{names:?}");
    for name in names.iter().filter_map(Value::as_str) {
        assert!(page.contains(name), "the page does not name {name}");
    }
    // Whoever has not chosen the toolset does not see it.
    let mut other = crate::support::Client::start(&json!({}));
    assert_eq!(other.request("resources/list", &json!({}))["result"]["resources"], json!([]));
    assert!(other.request("resources/read", &json!({"uri": URI}))["error"].is_object());
}

#[test]
fn calls_that_are_gathered_are_under_way_together() {
    let servers = json!({"meeting": {"command": "python3", "args": ["-S", "-c", MEETING]}});
    let mut client = alone(&servers);
    // Were they made one after the other, the first would wait for the last for ever.
    let code = "import asyncio\nfrom mcp import runtime\nfrom mcp.servers.meeting import meet\n\
        ways = [mcp_meeting.meet, mcp_servers['meeting'].meet, meet]\n\
        calls = [way(count=6, name=str(n)) for n, way in enumerate(ways)]\n\
        calls += [runtime.call_tool('meeting', 'meet', {'count': 6, 'name': str(n)}) for n in (3, 4, 5)]\n\
        await asyncio.gather(*calls)";
    let ran = run(&mut client, &json!({"code": code, "servers": ["meeting"]}));
    assert_eq!(ran["structuredContent"]["result"], json!([0, 1, 2, 3, 4, 5]), "{ran}");
}

#[test]
fn a_server_that_does_not_start_is_an_error_and_no_end() {
    let servers = json!({"broken": {"command": "/nowhere/server"}, "fine": {"command": "python3", "args": ["-S", "-c", MEETING]}});
    let mut client = alone(&servers);
    let code = "from mcp import runtime\n\
        said = [runtime.discovered_servers(), [len(s['tools']) for s in runtime.list_loaded_server_metadata()]]\n\
        try:\n    await mcp_broken.anything()\nexcept ToolError as error:\n    said.append(error.code)\n\
        said + [await mcp_fine.meet(count=1, name='here')]";
    let asked = json!({"code": code, "servers": ["broken", "fine"]});
    let ran = run(&mut client, &asked);
    let expected = json!([["broken", "fine"], [0, 1], "UPSTREAM_ERROR", "here"]);
    assert_eq!(ran["structuredContent"]["result"], expected, "{ran}");
    // The next one is answered too.
    assert_eq!(text(&run(&mut client, &json!({"code": "1 + 1"}))), "2");
}

#[test]
fn nothing_of_a_run_outlives_its_timeout() {
    let mut client = alone(&json!({}));
    let code = "import subprocess, time\nsubprocess.Popen(['sleep', '1234'], start_new_session=True)\n\
                print('begun', flush=True)\nwhile True:\n    time.sleep(60)";
    let ran = run(&mut client, &json!({"code": code, "timeout": 3}));
    assert_eq!(ran["structuredContent"]["status"], "timeout", "{ran}");
    assert_eq!(ran["structuredContent"]["stdout"], json!(["begun"]));
    for pid in descendants(client.child.id()) {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!line.starts_with(b"sleep\0"), "{pid} is still there");
    }
}

#[test]
fn a_long_line_is_cut_and_kept_whole() {
    let mut client = alone(&json!({}));
    let code = "print('a' * 100_000 + 'b')\nprint('c')";
    let ran = run(&mut client, &json!({"code": code}));
    assert_eq!(ran["structuredContent"]["status"], "success");
    let said = text(&ran);
    assert!(said.chars().count() < 11_000, "{}", said.len());
    assert!(said.ends_with("ab\nc"), "{said:.200}");
    let uri = said.split("the resource ").nth(1).and_then(|rest| rest.split(']').next());
    let uri = uri.unwrap_or_else(|| panic!("no resource in {said:.200}"));
    let read = client.request("resources/read", &json!({"uri": uri}));
    let whole = read["result"]["contents"][0]["text"].as_str().expect("a text");
    assert_eq!(whole, format!("{}b\nc", "a".repeat(100_000)));
    // A client that reads the structured part alone is spared too.
    assert!(ran["structuredContent"].to_string().len() < 11_000);
}

#[test]
fn every_part_has_its_share_of_what_is_shown() {
    let mut client = alone(&json!({}));
    let code =
        "import sys\nprint('o' * 50_000)\nprint('e' * 50_000, file=sys.stderr)\n'r' * 50_000";
    let ran = run(&mut client, &json!({"code": code}));
    let structured = &ran["structuredContent"];
    assert!(structured.to_string().len() < 12_000, "{}", structured.to_string().len());
    for (part, letter) in [("stdout", 'o'), ("stderr", 'e'), ("result", 'r')] {
        let written = structured[part].to_string();
        assert!(written.matches(letter).count() > 2_000, "{part} is {written:.100}");
    }
}

#[test]
fn too_many_names_are_refused() {
    let mut client = alone(&json!({"time": {"command": "/nowhere"}}));
    let many = |count: usize| json!({"code": "1", "servers": vec!["time"; count]});
    let ran = run(&mut client, &many(1_000));
    assert_eq!(ran["structuredContent"]["servers"], json!(["time"]), "{ran}");
    let refused = run(&mut client, &many(1_001));
    assert_eq!(refused["structuredContent"]["status"], "validation_error");
    let why = "servers: there are 1001; at most 1000 are allowed";
    assert_eq!(refused["structuredContent"]["error"], why);
}

/// The official SDK has the same name, and its own modules.
#[test]
fn a_real_package_called_mcp_is_there_beside_ours() {
    let Some(world) = crate::support::world() else { return };
    let settings = format!("[python]\nvenv = {:?}\n", world.join("venv"));
    let Some(mut seed) = Seed::with(&settings, &[]) else { return };
    let code = "import sys\nfrom mcp import runtime\nfrom mcp.servers.everything import echo\n\
        before = 'mcp.types' in sys.modules\n\
        from mcp import ClientSession\nimport mcp.types\n\
        [before, ClientSession.__module__, mcp.types.Tool.__module__, runtime.list_servers_sync()[0], \
        await echo(message='hi')]";
    let ran = seed.run(&json!({"code": code, "servers": ["everything"], "timeout": 120}));
    let result = ran["structuredContent"]["result"].as_array().unwrap_or_else(|| panic!("{ran}"));
    assert_eq!(result[0], false, "ours does not load theirs");
    assert!(result[1].as_str().is_some_and(|module| module.starts_with("mcp.client")), "{ran}");
    assert_eq!(result[3..], [json!("everything"), json!("Echo: hi")]);
}
