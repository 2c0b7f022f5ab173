use codexec_types::{CallCode, ToolDetail, ToolKind};

use super::*;

pub(super) fn tool(server: &str, tool: &str, args: &str) -> Ask {
    Ask::Tool { server: server.to_owned(), tool: tool.to_owned(), args: json(args) }
}

fn named(name: &str, args: &str) -> Ask {
    Ask::Named { name: name.to_owned(), args: json(args) }
}

#[track_caller]
pub(super) fn check_asks(code: &str, expected: &[Ask]) {
    let record = javascript(code);
    assert!(record.ending.is_ok(), "{code}: {:?}", record.ending);
    assert_eq!(record.asks, expected, "{code}");
}

#[test]
fn every_way_to_call_asks_the_same() {
    let expected = [tool("github", "get_issue", r#"{"id":1}"#)];
    check_asks("await tools.github.get_issue({id: 1})", &expected);
    check_asks("await tools['github']['get_issue']({id: 1})", &expected);
    check_asks("call_tool('github', 'get_issue', {id: 1})", &expected);
    check_asks("await callTool('github', 'get_issue', {id: 1})", &expected);
    check_asks("call_tools([{server: 'github', tool: 'get_issue', args: {id: 1}}])", &expected);
    check_asks("const {get_issue} = tools.github; await get_issue({id: 1})", &expected);
    let expected = [named("mcp__github__get_issue", r#"{"id":1}"#)];
    check_asks("await callMCPTool('mcp__github__get_issue', {id: 1})", &expected);
    check_asks("await call_mcp_tool('mcp__github__get_issue', {id: 1})", &expected);
    check_asks("call_tool('mcp__github__get_issue', {id: 1})", &expected);
    check_asks("call_tools([{name: 'mcp__github__get_issue', args: {id: 1}}])", &expected);
    check_asks("await tools.github.list()", &[tool("github", "list", "{}")]);
    check_asks("await tools.my_server.x()", &[tool("my-server", "x", "{}")]);
    check_asks("await tools['my-server'].x()", &[tool("my-server", "x", "{}")]);
    check_asks("await tools.githob.x()", &[tool("githob", "x", "{}")]);
}

#[test]
fn resources_and_prompts_are_asked_for() {
    let s = || "s".to_owned();
    check_asks(
        "await resources.list(); await resources.list('s'); await resources.templates('s')",
        &[
            Ask::Resources { server: None },
            Ask::Resources { server: Some(s()) },
            Ask::ResourceTemplates { server: Some(s()) },
        ],
    );
    let uri = "x://\"y".to_owned();
    check_asks("await resources.read('s', 'x://\"y')", &[Ask::ReadResource { server: s(), uri }]);
    check_asks("await prompts.list('s')", &[Ask::Prompts { server: Some(s()) }]);
    let prompt = |args| Ask::Prompt { server: s(), name: "p".to_owned(), args: json(args) };
    check_asks(
        "await prompts.get('s', 'p'); await prompts.get('s', 'p', {a: 'b'})",
        &[prompt("{}"), prompt(r#"{"a":"b"}"#)],
    );
    // A server of that name is not shadowed.
    check_asks("await tools.resources.list()", &[tool("resources", "list", "{}")]);
}

#[test]
fn discovery_asks() {
    let words =
        |words: &[&str]| Ask::Discover { words: words.iter().map(ToString::to_string).collect() };
    check_asks("await discoverMCPTools()", &[words(&[])]);
    check_asks("await discoverMCPTools({search: ['a', 'b']})", &[words(&["a", "b"])]);
    check_asks("await discover_mcp_tools({search: 'a'})", &[words(&["a"])]);
    let search = |limit| Ask::Search {
        query: "issues".to_owned(),
        limit,
        server: None,
        kind: ToolKind::Any,
        detail: ToolDetail::Summary,
    };
    check_asks("await searchTools('issues')", &[search(10)]);
    check_asks("await search_tools('issues', 3)", &[search(3)]);
    check_asks("await search_tools('issues', {limit: 3})", &[search(3)]);
    let narrowed = Ask::Search {
        query: String::new(),
        limit: 10,
        server: Some("github".to_owned()),
        kind: ToolKind::ReadOnly,
        detail: ToolDetail::Full,
    };
    check_asks(
        "await searchTools('', {server: 'github', readOnly: true, detail: 'full'})",
        &[narrowed],
    );
    let schema = Ask::Schema { name: "github.x".to_owned() };
    check_asks(
        "await getToolSchema('github.x'); await get_tool_schema('github.x')",
        &[schema.clone(), schema],
    );
    check_asks(
        "await help(); await help('x')",
        &[Ask::Help { name: None }, Ask::Help { name: Some("x".to_owned()) }],
    );
}

#[test]
fn answers_arrive_as_they_are() {
    let with = |code: &str, reply: &str| {
        ending(&play(job(Language::JavaScript, code), |_| Ok(json(reply))))
    };
    assert_eq!(with("await tools.a.b()", r#"{"x":[1,"é",null]}"#), r#"{"x":[1,"é",null]}"#);
    assert_eq!(with("call_tool('a', 'b')", "5"), r#"{"ok":true,"result":5}"#);
    assert_eq!(with("await call_tool('a', 'b')", "5"), r#"{"ok":true,"result":5}"#);
    assert_eq!(with("typeof await help()", "\"text\""), r#""string""#);
    assert_eq!(with("(await tools.a.b()).__proto__ === 1", r#"{"__proto__":1}"#), "true");
    let big = format!("\"{}\"", "x".repeat(8 << 20));
    assert_eq!(with("(await tools.a.b()).length", &big), (8 << 20).to_string());
    assert_eq!(with("call_tool('a', 'b').result.length", &big), (8 << 20).to_string());
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(
        with("try { await tools.a.b() } catch (e) { return e.name }", &deep),
        r#""RangeError""#
    );
}

fn refuse(_: &Ask) -> Reply {
    Err(CallError::new(CallCode::ToolNotFound, "no such tool; did you mean y?").about("a", "x"))
}

#[test]
fn failures_are_tool_errors() {
    let with = |code: &str| ending(&play(job(Language::JavaScript, code), refuse));
    let caught = "try { await tools.a.x() } catch (e) { return [e instanceof ToolError, e instanceof Error, e.name, e.code, e.server, e.tool, e.message] }";
    assert_eq!(
        with(caught),
        r#"[true,true,"ToolError","TOOL_NOT_FOUND","a","x","no such tool; did you mean y?"]"#
    );
    assert_eq!(with("\n  await tools.a.x()"), "TOOL_NOT_FOUND no such tool; did you mean y? @2:17");
    assert_eq!(
        with("call_tool('a', 'x')"),
        r#"{"ok":false,"error":{"code":"TOOL_NOT_FOUND","message":"no such tool; did you mean y?","server":"a","tool":"x"}}"#
    );
    assert_eq!(
        with("throw new ToolError('mine', {code: 'UPSTREAM_ERROR'})"),
        "RUNTIME_ERROR ToolError: mine @1:11"
    );
    assert_eq!(
        with("(await Promise.allSettled([tools.a.x(), 1])).map(r => r.status)"),
        r#"["rejected","fulfilled"]"#
    );
}

#[test]
fn arguments_are_one_object() {
    let takes = "a.x takes one object of named arguments, like {id: 1}; it was given";
    let with = |args: &str| ending(&javascript(&format!("await tools.a.x({args})")));
    assert_eq!(with("'text'"), format!("INVALID_ARGS {takes} a string @1:15"));
    assert_eq!(with("[1]"), format!("INVALID_ARGS {takes} an array @1:15"));
    assert_eq!(
        with("{n: 1n}"),
        "INVALID_ARGS the arguments of a.x cannot be written as JSON: TypeError: BigInt are forbidden in JSON.stringify @1:15"
    );
    let big =
        "INVALID_ARGS the arguments of a.x are 9437192 bytes; at most 8388608 are allowed @1:37";
    assert_eq!(with("{b: 'x'.repeat(9 << 20)}"), big);
    check(
        "call_tool('a', 'x', 5)",
        &format!(
            r#"{{"ok":false,"error":{{"code":"INVALID_ARGS","message":"{takes} a number","server":"a","tool":"x"}}}}"#
        ),
    );
}

#[test]
fn names_are_strings_and_nothing_else() {
    let sly = "{toString() { return 'echo' }}";
    for call in [
        "callTool('a', SLY, {})",
        "callTool(SLY, 'a', {})",
        "callMCPTool(SLY, {})",
        "callTool(['a'], ['b'], {})",
        "callTool(new String('a'), 'b', {})",
    ] {
        let code =
            format!("try {{ await {} }} catch (e) {{ return e.name }}", call.replace("SLY", sly));
        let record = javascript(&code);
        assert_eq!((ending(&record).as_str(), record.asks.len()), (r#""TypeError""#, 0), "{code}");
    }
}

#[test]
fn tools_look_like_an_object() {
    let names = |ask: &Ask| match ask {
        Ask::ToolNames { server } if server == "github" => Ok(json(r#"["x","y"]"#)),
        other => panic!("not asked for: {other:?}"),
    };
    let with = |code: &str| ending(&play(job(Language::JavaScript, code), names));
    assert_eq!(with("Object.keys(tools)"), r#"["github","my-server"]"#);
    assert_eq!(
        with("['github' in tools, 'my_server' in tools, 'nope' in tools]"),
        "[true,true,false]"
    );
    assert_eq!(
        with("[tools.then, tools.toJSON, typeof tools.nope, await tools === tools]"),
        r#"[null,null,"object",true]"#
    );
    assert_eq!(with("Object.keys(tools.github)"), r#"["x","y"]"#);
    assert_eq!(
        with("Object.entries(tools.github).map(([k, f]) => k + typeof f)"),
        r#"["xfunction","yfunction"]"#
    );
    assert_eq!(with("['x' in tools.github, 'z' in tools.github]"), "[true,false]");
    assert_eq!(with("JSON.stringify(tools.github)"), r#""{}""#);
    assert_eq!(with("try { tools.github = 1 } catch (e) { return e.name }"), r#""TypeError""#);
}

#[test]
fn a_thousand_calls_at_once() {
    let code = "const all = await Promise.all(Array.from({length: 1000}, (_, i) => tools.a.b({i})));\nall.map(x => x.tool.args.i).every((x, i) => x === i)";
    let record = play_batches(job(Language::JavaScript, code), 1_000, echo);
    assert_eq!((ending(&record).as_str(), record.asks.len()), ("true", 1_000));
}

#[test]
fn big_asks_and_big_answers_do_not_deadlock() {
    // The host answers without reading: each answer fills the socket while the guest writes.
    let code = "const text = 'x'.repeat(1 << 20);\nconst all = await Promise.all(Array.from({length: 12}, () => tools.a.b({text})));\nall.length";
    let record = play(job(Language::JavaScript, code), echo);
    assert_eq!(ending(&record), "12");
}

#[test]
fn batches_keep_their_order_and_their_width() {
    let code = "call_tools(Array.from({length: 8}, (_, i) => ({server: 'a', tool: 'b', args: {i}})), {max_parallel: 4}).map(r => r.result.tool.args.i)";
    let record = play_batches(job(Language::JavaScript, code), 1, echo);
    assert_eq!(ending(&record), "[0,1,2,3,4,5,6,7]");
    check("call_tools([])", "[]");
    check(
        "call_tools([{server: 'a', tool: 5}])[0].error.message",
        r#""TypeError: the tool's name must be a string, not a number""#,
    );
    check(
        "call_tools([], {max_parallel: 33})",
        "RUNTIME_ERROR RangeError: max_parallel must be 1 to 32, not 33 @1:1",
    );
    check(
        "call_tools('x')",
        "RUNTIME_ERROR TypeError: call_tools takes an array, not a string @1:1",
    );
    check(
        "call_tools(new Array(101).fill({}))",
        "RUNTIME_ERROR RangeError: call_tools takes at most 100 calls, not 101 @1:27",
    );
}

#[test]
fn a_synchronous_call_leaves_other_answers_alone() {
    let code = "const one = tools.a.one(); const two = call_tool('a', 'two'); [(await one).tool.tool, two.result.tool.tool]";
    let record = play_batches(job(Language::JavaScript, code), 2, echo);
    assert_eq!(ending(&record), r#"["one","two"]"#);
}

#[test]
fn a_call_that_is_not_awaited_is_an_error_with_its_place() {
    let lost = |label: &str, at: &str| {
        format!(
            "RUNTIME_ERROR {label} was not awaited: the call was made, but the code went on without \
             its result; write await {label}(..) @{at}"
        )
    };
    let github = |at: &str| lost("tools.github.x", at);
    check("// why\nconst r = tools.github.x({}); r.title", &github("2:24"));
    check("const r = [tools.github.x({})];\nreturn r", &github("1:25"));
    check("tools.github.x({}); 1", &github("1:14"));
    check("const r = callTool('github', 'x'); `${r}`", &lost("callTool", "1:11"));
    check("const l = sessions.list(); 1", &lost("sessions.list", "1:20"));
    check(
        "const r = tools.github.x({});\nr.items.length",
        "RUNTIME_ERROR TypeError: cannot read property 'length' of undefined; write await \
         tools.github.x(..): without await, its value is a Promise @2:1",
    );
    let promise = "it contains a Promise; await it, or a list of them with await Promise.all(list)";
    check(
        "[1, 2].map(async id => await tools.github.x({id}))",
        &format!(
            "SERIALIZATION_ERROR the result cannot be written as JSON: TypeError: {promise}; return \
             plain objects, arrays, strings, numbers, booleans or null"
        ),
    );
}

#[test]
fn every_use_of_a_promise_counts_as_awaiting_it() {
    check("tools.github.x()", r#"{"tool":{"server":"github","tool":"x","args":{}}}"#);
    check("const p = tools.github.x(); (await p).tool.tool", r#""x""#);
    check("const p = tools.github.x(); await Promise.all([p]); 1", "1");
    check("tools.github.x().catch(() => {}); 1", "1");
    check("tools.github.x().finally(() => {}); 1", "1");
    check("async function f() { return tools.github.x() } (await f()).tool.tool", r#""x""#);
    check("await Promise.race([tools.github.x(), tools.github.y()]); 1", "1");
    check("for await (const r of [tools.github.x()]) r.tool.tool; 1", "1");
    check(
        "const p = tools.github.x(); await p; [p instanceof Promise, p.constructor === Promise]",
        "[true,true]",
    );
}
