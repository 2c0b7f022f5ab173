//! How often, how long and with which words code may look for tools.

use serde_json::{Value, json};

use super::Seed;
use crate::startup::{python, upstream};
use crate::world::World;

const HANG: &str = include_str!("../startup/hang.py");

/// Says how many requests were met, and what the first one that was not was told.
const UNTIL_REFUSED: &str = "let met = 0;
    try { for (; met < 100; met++) await searchTools('time'); } catch (error) {
        return [met, error.message.replace(/in \\d+ s,/, 'in N s,')];
    }";

#[test]
fn thirty_requests_a_minute_whatever_execution_they_come_from() {
    let seed = &mut Seed::with(&json!({"up": upstream(&["up"])}), |_| {});
    // It runs from here on.
    seed.failed("executePython", &json!({"code": "await call_mcp_tool('mcp__up__nope', {})"}));
    let ready =
        json!({"code": "await callMCPTool('mcp__up__who')", "allowedTools": ["mcp__up__*"]});
    seed.executed("executeTypescript", &ready);
    // Every way to look for tools counts, in each language.
    let code = "await discoverMCPTools();
        await discoverMCPTools({ search: ['who'] });
        await getToolSchema('mcp__up__who');
        await searchTools('who');
        await help();
        Object.keys(tools.up);
        try { await searchTools('a;b'); } catch {}
        return 'seven';";
    assert_eq!(seed.done("executeTypescript", &json!({"code": code})), "seven");
    let code = "await discover_mcp_tools()\nawait discover_mcp_tools(['who'])\n\
                await get_tool_schema('mcp__up__who')\nawait search_tools('who')\n\
                help()\nlist(tools.up)\n'six'";
    assert_eq!(seed.done("executePython", &json!({"code": code})), "six");
    let refused = "Rate limit exceeded: at most 30 discovery requests in 60 s; try again in N s, \
                   or keep what earlier ones gave";
    let said = |met: u32| json!([met, refused]);
    let mut run = || -> Value {
        let output = seed.done("executeTypescript", &json!({"code": UNTIL_REFUSED}));
        serde_json::from_str(&output).expect("JSON")
    };
    assert_eq!(run(), said(17));
    assert_eq!(run(), said(0), "a new execution gives no new requests");
    // Calls have a count of their own: two were made, and one more here.
    assert_eq!(seed.executed("executeTypescript", &ready)["success"], true);
    let code = "let met = 0;
        try { for (; met < 100; met++) await callMCPTool('mcp__up__who'); } catch (error) {
            return [met, error.code, error.message.replace(/in \\d+ s,/, 'in N s,')];
        }";
    let calls = json!({"code": code, "allowedTools": ["mcp__up__*"]});
    let executed = seed.executed("executeTypescript", &calls);
    let said: Value =
        serde_json::from_str(executed["output"].as_str().expect("text")).expect("JSON");
    let refused = "Rate limit exceeded: at most 30 tool calls in 60 s; try again in N s, or keep \
                   what earlier ones gave";
    assert_eq!(said, json!([27, "RATE_LIMITED", refused]));
    assert_eq!(executed["toolCallSummary"][0]["callCount"], 27, "{executed}");
}

#[test]
fn a_hung_server_fails_no_discovery_and_is_named_in_the_result() {
    let servers = json!({
        "up": upstream(&["up"]),
        "hung": {"command": python(), "args": ["-c", HANG, "hung"]},
    });
    let seed = &mut Seed::with(&servers, |_| {});
    let ready =
        json!({"code": "await callMCPTool('mcp__up__who')", "allowedTools": ["mcp__up__*"]});
    seed.executed("executeTypescript", &ready);
    let code = "const names = async (found) => (await found).map((tool) => tool.name);
        return [await names(discoverMCPTools()), await names(searchTools('who')),
            await getToolSchema('mcp__hung__who'), (await getToolSchema('mcp__up__who')).name];";
    let executed = seed.executed("executeTypescript", &json!({"code": code}));
    let said: Value =
        serde_json::from_str(executed["output"].as_str().expect("a text")).expect("JSON");
    let names = json!(["mcp__up__who"]);
    assert_eq!(said, json!([names, names, null, "mcp__up__who"]));
    let notes = executed["discoveryNotes"].to_string();
    assert!(notes.contains("incomplete: ") && notes.contains("hung"), "{notes}");
}

#[test]
fn what_the_users_settings_forbid_is_not_shown_either() {
    let Some(world) = World::find() else { return };
    let seed = &mut Seed::with(&world.servers, |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        crate::support::keep_settings(&home, "[tools]\nallowed = [\"time.*\"]\n");
    });
    let code = "const caught = async (call) => { try { return await call(); } catch (error) { return error.message; } };
        const time = await caught(() => callMCPTool('mcp__time__convert_time', {}));
        return [Object.keys(tools),
            (await discoverMCPTools()).map((tool) => tool.name),
            time.split(';')[0],
            await caught(() => callMCPTool('mcp__everything__echo', { message: 'x' }))];";
    let args = json!({"code": code, "allowedTools": ["mcp__*__*"], "timeoutMs": 60_000});
    let output = seed.done("executeTypescript", &args);
    assert_eq!(
        serde_json::from_str::<Value>(&output).expect("JSON"),
        json!([
            ["time"],
            ["mcp__time__get_current_time", "mcp__time__convert_time"],
            "time.convert_time: `source_timezone` is missing",
            "tool \"mcp__everything__echo\" is not allowed by the settings of codexec",
        ])
    );
}

/// There it held for TypeScript only.
#[test]
fn what_no_request_may_widen_holds_in_both_languages() {
    let servers = json!({"up": upstream(&["up"]), "other": upstream(&["other"])});
    let seed = &mut Seed::with(&servers, |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        let settings = "[code-executor]\nallowed-tools = [\"mcp__up__who\"]\n";
        crate::support::keep_settings(&home, settings);
    });
    let refused = "tool \"mcp__other__who\" is not allowed by the settings of codexec";
    let code = "const who = await callMCPTool('mcp__up__who');
        const found = (await discoverMCPTools()).map((tool) => tool.name);
        try { await callMCPTool('mcp__other__who'); } catch (error) { return [who.name, found, error.message]; }";
    let args =
        |code: &str| json!({"code": code, "allowedTools": ["mcp__*__*"], "timeoutMs": 60_000});
    let said: Value =
        serde_json::from_str(&seed.done("executeTypescript", &args(code))).expect("JSON");
    assert_eq!(said, json!(["up", ["mcp__up__who"], refused]));
    let code = "who = await call_mcp_tool('mcp__up__who')\n\
                found = [tool['name'] for tool in await discover_mcp_tools()]\n\
                try:\n    await call_mcp_tool('mcp__other__who')\n\
                except ToolError as error:\n    said = [who['name'], found, str(error)]\nsaid";
    let said: Value = serde_json::from_str(&seed.done("executePython", &args(code))).expect("JSON");
    assert_eq!(said, json!(["up", ["mcp__up__who"], refused]));
}

/// What code starts by our own functions is held to the same rules, and gets no requests anew.
#[test]
fn code_that_starts_code_gives_it_no_more() {
    let seed = &mut Seed::with(&json!({"up": upstream(&["up"])}), |_| {});
    let ready =
        json!({"code": "await callMCPTool('mcp__up__who')", "allowedTools": ["mcp__up__*"]});
    seed.executed("executeTypescript", &ready);
    let code = format!(
        "for (let n = 0; n < 25; n++) await searchTools('who');
        await scripts.save('look', {UNTIL_REFUSED:?}, {{ language: 'typescript', description: 'd' }});
        return (await scripts.run('look')).result;"
    );
    let args = json!({"code": code, "allowedTools": ["mcp__codexec__*"]});
    let said: Value = serde_json::from_str(&seed.done("executeTypescript", &args)).expect("JSON");
    assert_eq!(said[0], 5, "{said}");
}
