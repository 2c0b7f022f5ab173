//! What code asks of the host at its worst: each ask costs its own execution, and nobody else.

use serde_json::{Value, json};

use crate::attacks::host::memory_kib;
use crate::support::Client;

/// What codexec may grow by, whatever code asks.
const GROWTH_KIB: u64 = 96 << 10;

/// A script whose parameters are 2,600 rules for each item of its input.
const SAVE_SLOW: &str = "await scripts.save('slow', '1', {language: 'javascript', parameters: \
    {type: 'object', properties: {l: {allOf: new Array(2600).fill({items: {minimum: 0}})}}}});\n";

/// Worst asks, over and over, until the time is up.
const WORST: [&str; 5] = [
    "const l = new Array(90000).fill(1); while (true) await scripts.run('slow', {input: {l}}).catch(() => 0)",
    "const words = Array.from({length: 200}, (_, n) => 'w' + n); while (true) await Promise.all(\
        Array.from({length: 60}, () => discoverMCPTools(words).catch(() => 0)))",
    "const words = new Array(500000).fill('a'); while (true) await discoverMCPTools(words).catch(() => 0)",
    "const text = 'x'.repeat(4 << 20); while (true) await callMCPTool('mcp__a__b', {text}).catch(() => 0)",
    "const l = new Array(90000).fill([1]); while (true) await callMCPTool('mcp__a__b', {l}).catch(() => 0)",
];

#[test]
fn ord_1_an_ask_that_is_too_large_is_refused_and_the_code_goes_on() {
    let mut client = Client::start(&json!({}));
    let code = "const said = [];\n\
        for (const ask of [\n\
            () => discoverMCPTools(new Array(300000).fill('a')),\n\
            () => callMCPTool('mcp__s__t', {list: new Array(150000).fill(1)}),\n\
            () => callMCPTool('mcp__s__t', {text: 'x'.repeat(5 << 20)}),\n\
            () => searchTools('x'.repeat(20000)),\n\
            () => scripts.save('s', 'x'.repeat(5 << 20)),\n\
        ]) await ask().catch((error) => said.push(error.message));\n\
        return said.join('\\n')";
    let said = client.run(code).fine();
    let lines: Vec<&str> = said.lines().collect();
    let expected = [
        "words: there are more than 200",
        "arguments: 150",
        "arguments: 5242",
        "query: it has 20000 bytes; at most 16384 are allowed",
        "arguments: 5242",
    ];
    assert_eq!(lines.len(), expected.len(), "{said}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn ord_2_a_check_without_end_is_given_up_and_said_so() {
    let mut client = Client::start(&json!({}));
    let code = format!(
        "{SAVE_SLOW}const l = new Array(90000).fill(1);\n\
         return await scripts.run('slow', {{input: {{l}}}}).catch((error) => error.message)"
    );
    let said = client.run(&code).fine();
    assert!(said.contains("`input` is too much work to check"), "{said}");
}

/// Pings, other executions and the limits of those who ask hold meanwhile.
#[test]
fn ord_3_while_code_asks_its_worst_everybody_else_is_served() {
    let mut client = Client::start(&json!({}));
    client.run(SAVE_SLOW).fine();
    let before = memory_kib(client.child.id(), "VmRSS");
    let guests: Vec<u64> = WORST
        .iter()
        .map(|code| client.send_call("execute_code", &json!({"code": code, "timeout_ms": 3_000})))
        .collect();
    let (mut ended, mut served): (Vec<String>, u32) = (Vec::new(), 0);
    for id in guests {
        while !client.others.iter().any(|message| message["id"] == id) {
            client.ping();
            assert_eq!(client.run("1+1").fine(), "2");
            served += 1;
        }
        ended.push(client.wait_call(id).failed());
    }
    // Where one ask keeps the loop until it is done, hardly anybody else is served meanwhile.
    assert!(served >= 5, "{served} others were served");
    for (code, ending) in WORST.iter().zip(&ended) {
        let is_limit = ending.starts_with("TIMEOUT") || ending.starts_with("MAX_TOOL_CALLS");
        assert!(is_limit, "{code}: {ending}");
    }
    let grown = memory_kib(client.child.id(), "VmHWM").saturating_sub(before);
    assert!(grown <= GROWTH_KIB, "codexec grew by {grown} KiB");
}

#[test]
fn ord_3_what_code_has_started_ends_with_it_and_is_written_down() {
    let mut client = Client::with(&json!({}), |command| {
        command.env("CODEXEC_TOOLSET", "codexec");
    });
    let save = json!({"name": "loop", "description": "d", "language": "javascript",
        "code": "while (true) {}"});
    client.call("save_script", &save).fine();
    let code = "scripts.run('loop').catch(() => 0); await scripts.list(); 1";
    let call = json!({"language": "javascript", "code": code});
    client.call("execute_code", &call).fine();
    let logs = client.call("search_execution_logs", &json!({})).fine();
    let logs: Value = serde_json::from_str(&logs).expect("JSON");
    let statuses: Vec<&str> = logs["results"]
        .as_array()
        .expect("results")
        .iter()
        .map(|found| found["status"].as_str().expect("a word"))
        .collect();
    assert!(!statuses.is_empty() && !statuses.contains(&"running"), "{logs}");
}

#[test]
fn ord_4_what_one_execution_makes_us_keep_is_bounded() {
    let mut client = Client::start(&json!({}));
    let code = "let saved = 0;\n\
        try { for (; saved < 100; saved++) \
            await scripts.save('s' + saved, '//' + 'x'.repeat(1000000), {language: 'javascript'}) }\n\
        catch (error) { return saved + ' ' + error.message }";
    let call = json!({"code": code, "timeout_ms": 60_000});
    let said = client.call("execute_code", &call).fine();
    assert!(said.contains("this execution has used its storage allowance"), "{said}");
    let saved: u32 = said.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    assert!((5..20).contains(&saved), "{said}");
    // The next one has its own.
    client.run("await scripts.save('other', '1', {language: 'javascript'})").fine();
}

#[test]
fn ord_5_progress_counts_as_output_and_the_last_word_is_told() {
    let mut client = Client::start(&json!({}));
    let watched = |client: &mut Client, code: &str| {
        let call = json!({"name": "execute_code", "arguments": {"code": code},
            "_meta": {"progressToken": "p"}});
        let id = client.send("tools/call", &call);
        let said = client.wait_call(id);
        let told: Vec<String> = client
            .others
            .drain(..)
            .filter_map(|message| Some(message["params"]["message"].as_str()?.to_owned()))
            .collect();
        (said, told)
    };
    let before = memory_kib(client.child.id(), "VmRSS");
    let flood = "for (let i = 0; i < 3000; i++) progress('x'.repeat(1 << 14))";
    let (said, told) = watched(&mut client, flood);
    assert!(said.failed().starts_with("OUTPUT_LIMIT"));
    assert!(told.iter().all(|message| message.len() <= 4 << 10));
    let grown = memory_kib(client.child.id(), "VmHWM").saturating_sub(before);
    assert!(grown <= GROWTH_KIB, "codexec grew by {grown} KiB");
    let (said, told) =
        watched(&mut client, "for (let i = 0; i < 2000; i++) progress('step ' + i); return 1");
    assert_eq!(said.fine(), "1");
    assert_eq!(told.last().map(String::as_str), Some("step 1999"));
    assert!(told.len() < 500, "{} messages", told.len());
    // Lines that code prints are told as well, the last ones always.
    let (said, told) = watched(&mut client, "console.log('one\\ntwo'); console.log('three')");
    assert_eq!(said.fine(), "one\ntwo\nthree");
    let lines: Vec<&str> = told.iter().flat_map(|message| message.lines()).collect();
    assert_eq!(lines, ["one", "two", "three"]);
    let flood = "for (let i = 0; i < 5000; i++) console.log('x'.repeat(300), i); progress('end')";
    let (said, told) = watched(&mut client, flood);
    said.fine();
    assert!(told.iter().all(|message| message.len() <= 5_000), "{told:?}");
    assert!(told.last().is_some_and(|last| last.ends_with("end")), "{told:?}");
}
