//! Two dozen servers that nobody here wrote, in one process.

use std::path::Path;

use serde_json::{Value, json};

use crate::startup::{python, wait_until_ready};
use crate::support::{Client, PATIENCE, command, within, world};
use crate::world::value;

/// All that start without a network; those that want a key get one that opens nothing.
fn fleet(world: &Path, folder: &Path) -> Value {
    let (bin, more) = (world.join("npm/node_modules/.bin"), world.join("fleet/node_modules/.bin"));
    let node = |server: &str, args: &[&str], env: &[(&str, &str)]| {
        let own = bin.join(server);
        let server = if own.exists() { own } else { more.join(server) };
        let server = server.to_str().expect("UTF-8");
        let args: Vec<&str> = std::iter::once(server).chain(args.iter().copied()).collect();
        let env: serde_json::Map<String, Value> =
            env.iter().map(|&(key, value)| (key.to_owned(), value.into())).collect();
        json!({"command": bin.join("node"), "args": args, "env": env})
    };
    let python = |server: &str, args: &[&str]| json!({"command": world.join("venv/bin").join(server), "args": args});
    let place = folder.to_str().expect("UTF-8");
    let memory = folder.join("memory.json");
    let memory = memory.to_str().expect("UTF-8");
    json!({
        "everything": node("mcp-server-everything", &[], &[]),
        "filesystem": node("mcp-server-filesystem", &[place], &[]),
        "memory": node("mcp-server-memory", &[], &[("MEMORY_FILE_PATH", memory)]),
        "thinking": node("mcp-server-sequential-thinking", &[], &[]),
        "github": node("mcp-server-github", &[], &[("GITHUB_PERSONAL_ACCESS_TOKEN", "none")]),
        "gitlab": node("mcp-server-gitlab", &[], &[("GITLAB_PERSONAL_ACCESS_TOKEN", "none")]),
        "slack": node(
            "mcp-server-slack",
            &[],
            &[("SLACK_BOT_TOKEN", "none"), ("SLACK_TEAM_ID", "none")],
        ),
        "maps": node("mcp-server-google-maps", &[], &[("GOOGLE_MAPS_API_KEY", "none")]),
        "brave": node("mcp-server-brave-search", &[], &[("BRAVE_API_KEY", "none")]),
        "postgres": node("mcp-server-postgres", &["postgresql://127.0.0.1:1/none"], &[]),
        "context7": node("context7-mcp", &[], &[]),
        "tavily": node("tavily-mcp", &[], &[("TAVILY_API_KEY", "none")]),
        "notion": node("notion-mcp-server", &[], &[("NOTION_TOKEN", "none")]),
        "hubspot": node("mcp-hubspot", &[], &[("PRIVATE_APP_ACCESS_TOKEN", "none")]),
        "firecrawl": node("firecrawl-mcp", &[], &[("FIRECRAWL_API_KEY", "none")]),
        "circleci": node("mcp-server-circleci", &[], &[("CIRCLECI_TOKEN", "none")]),
        "git-js": node("git-mcp-server", &[], &[("MCP_TRANSPORT_TYPE", "stdio")]),
        "time": python("mcp-server-time", &["--local-timezone", "UTC"]),
        "fetch": python("mcp-server-fetch", &[]),
        "git": python("mcp-server-git", &[]),
        "duckduckgo": python("duckduckgo-mcp-server", &[]),
        "excel": python("excel-mcp-server", &["stdio"]),
        "word": python("word_mcp_server", &[]),
        "aws-docs": python("awslabs.aws-documentation-mcp-server", &[]),
    })
}

/// How many tools each has, as its own authors would count them.
const TOOLS: [(&str, u64); 24] = [
    ("everything", 15),
    ("filesystem", 14),
    ("memory", 9),
    ("thinking", 1),
    ("github", 26),
    ("gitlab", 9),
    ("slack", 8),
    ("maps", 7),
    ("brave", 2),
    ("postgres", 1),
    ("context7", 2),
    ("tavily", 5),
    ("notion", 24),
    ("hubspot", 21),
    ("firecrawl", 26),
    ("circleci", 13),
    ("git-js", 28),
    ("time", 2),
    ("fetch", 1),
    ("git", 12),
    ("duckduckgo", 3),
    ("excel", 46),
    ("word", 54),
    ("aws-docs", 5),
];

#[test]
fn two_dozen_servers_are_one_catalogue() {
    let Some(world) = world() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let servers = home.path().join("servers.json");
    let fleet = json!({"mcpServers": fleet(&world, home.path())});
    std::fs::write(&servers, fleet.to_string()).expect("written");
    let mut command = command(home.path());
    command.args(["tools", "stats", "--json", "--mcp-config"]).arg(&servers);
    let output = command.output().expect("codexec runs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let actual: Vec<(&str, u64)> = stats["servers"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|server| {
            let name = server["server"].as_str().expect("a name");
            (name, server["tools"].as_u64().expect("a number"))
        })
        .collect();
    assert_eq!(actual, TOOLS, "{complaints}");
    // The order of magnitude is the point, not the number.
    assert!(stats["tokens"].as_u64() > Some(80_000), "{stats}");
    assert!(stats["listed_tokens"].as_u64() < Some(450), "{stats}");
    assert!(stats["saved"].as_f64() > Some(0.99), "{stats}");
}

/// Returns when the servers of the program run: on a busy machine they take longer to start
/// together than one execution may last.
fn start_each(client: &mut Client) {
    let home = client.home.path().to_str().expect("UTF-8").to_owned();
    for call in [
        "time.get_current_time({ timezone: 'UTC' })".to_owned(),
        "filesystem.list_allowed_directories()".to_owned(),
        "memory.read_graph({})".to_owned(),
        "thinking.sequentialthinking({ thought: 'none', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 })".to_owned(),
        format!("excel.create_workbook({{ path: '{home}/first.xlsx', sheets: ['Sums'] }})"),
        format!("word.create_document({{ filename: '{home}/first.docx', title: 'A letter' }})"),
    ] {
        client.run(&format!("await tools.{call}")).fine();
    }
}

#[test]
fn one_program_works_with_many_servers() {
    let Some(world) = world() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let mut fleet = fleet(&world, folder.path());
    let used = ["time", "filesystem", "memory", "thinking", "excel", "word"];
    fleet.as_object_mut().expect("an object").retain(|name, _| used.contains(&name.as_str()));
    let mut client = Client::start(&fleet);
    let place = json!(folder.path());
    start_each(&mut client);
    let code = format!(
        "const place = {place};
        const [time, , , , thought] = await Promise.all([
            tools.time.convert_time({{ source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' }}),
            tools.filesystem.write_file({{ path: place + '/notes.txt', content: 'three\\nlines\\nhere' }}),
            tools.memory.create_entities({{ entities: [{{ name: 'codexec', entityType: 'program', observations: ['runs code'] }}] }}),
            tools.excel.create_workbook({{ path: place + '/sums.xlsx', sheets: ['Sums'] }}),
            tools.thinking.sequentialthinking({{ thought: 'one', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }}),
        ]);
        await tools.excel.write_range({{ path: place + '/sums.xlsx', sheet: 'Sums', at: 'A1', rows: [['a', 'b'], [1, 2]] }});
        await tools.word.create_document({{ filename: place + '/letter.docx', title: 'A letter' }});
        const graph = await tools.memory.read_graph({{}});
        const files = await tools.filesystem.list_directory({{ path: place }});
        const names = JSON.stringify(files).match(/[a-z]+\\.(txt|xlsx|docx|json)/g).sort();
        return {{ time: time.target.datetime.slice(11, 16), graph: graph.entities[0].name, names, thought: thought.thoughtNumber }};"
    );
    let expected = json!({
        "time": "21:00",
        "graph": "codexec",
        "names": ["letter.docx", "memory.json", "notes.txt", "sums.xlsx"],
        "thought": 1,
    });
    assert_eq!(value(&mut client, &code), expected);
    assert!(folder.path().join("letter.docx").is_file());
}

const HANG: &str = include_str!("startup/hang.py");
const EIGHT: [(&str, usize); 8] = [
    ("everything", 15),
    ("filesystem", 14),
    ("memory", 9),
    ("thinking", 1),
    ("time", 2),
    ("fetch", 1),
    ("git", 12),
    ("duckduckgo", 3),
];

/// Of ten servers one hangs and one cannot start: answers come at once, say what is missing, and
/// have the tools of the other eight as soon as those have answered.
#[test]
fn a_cold_start_answers_at_once_and_says_what_is_missing() {
    let Some(world) = world() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let mut servers = fleet(&world, folder.path());
    let is_used = |name: &str| EIGHT.iter().any(|(used, _)| *used == name);
    servers.as_object_mut().expect("an object").retain(|name, _| is_used(name));
    servers["hung"] = json!({"command": python(), "args": ["-c", HANG, "hung"]});
    servers["broken"] = json!({"command": "/nowhere/mcp-server"});
    let mut client = Client::start(&servers);
    let search = |client: &mut Client, query: &str| {
        let query = json!({"query": query, "limit": 100, "detail": "names"});
        client.call("search_tools", &query).fine()
    };
    let notes = |text: &str| -> String {
        text.lines().filter(|line| line.starts_with('[')).collect::<Vec<_>>().join("\n")
    };
    // Nothing can match, so that this one waits as long as a search ever does.
    let first = notes(&search(&mut client, "zzzqqq"));
    assert!(first.contains("incomplete: ") && first.contains("hung"), "{first}");
    assert!(first.contains("broken"), "{first}");

    wait_until_ready(&mut client, &EIGHT.map(|(name, _)| name));
    let all = search(&mut client, "");
    for (name, tools) in EIGHT {
        let count = all.lines().filter(|line| line.starts_with(&format!("{name}."))).count();
        assert_eq!(count, tools, "{name}: {all}");
    }
    let said = notes(&all);
    assert!(said.contains(": hung"), "{said}");
    let failed = "[server broken is not available: it did not start: \"/nowhere/mcp-server\" was \
                  not found; install it, or write its whole path]";
    assert!(said.contains(failed), "{said}");

    let mark = client.home.path().join("state/cache/tools/hung.hung");
    assert!(within(PATIENCE, || mark.exists()), "a hung server is not remembered");
    client.restart(|_| {});
    let again = notes(&search(&mut client, "zzzqqq"));
    assert!(again.contains("because they do not answer: hung]"), "{again}");
    let code = "const all = await discoverMCPTools();
        return [all.length, await getToolSchema('mcp__hung__who'),
            (await getToolSchema('time.convert_time')).tool]";
    let reply = client.run(code).fine();
    let (value, notes) = reply.split_once("\n[discovery]\n").expect("a note");
    assert_eq!(value, r#"[57,null,"convert_time"]"#);
    assert!(notes.contains("because they do not answer: hung\n"), "{notes}");
    assert!(notes.contains("the schema of \"mcp__hung__who\" is null: server \"hung\""), "{notes}");
}
