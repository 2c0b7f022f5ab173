//! What upstreams have beside tools, read by code in every language.

use serde_json::{Value, json};

use crate::direct::scripted;
use crate::support::Client;
use crate::world::{World, value};

fn client() -> Client {
    Client::start(&json!({"s": scripted(), "t": scripted()}))
}

#[test]
fn code_lists_and_reads_resources_and_prompts() {
    let client = &mut client();
    let code = "const all = await resources.list();
        const one = await resources.list('s');
        return {
            all: all.map(r => r.server + ' ' + r.uri),
            one: one[0],
            templates: await resources.templates('s'),
            text: await resources.read('s', 'test://0'),
            json: await resources.read('s', 'test://1'),
            binary: (await resources.read('s', 'test://2')).blob.split('').join(' '),
            both: (await resources.read('s', 'test://both')).map(b => b.text),
            prompts: await prompts.list('s'),
            prompt: await prompts.get('s', 'greet', { who: 'Ada' }),
        };";
    let all = ["s test://0", "s test://1", "s test://2", "t test://0", "t test://1", "t test://2"];
    let expected = json!({
        "all": all,
        "one": {"server": "s", "uri": "test://0", "name": "n0"},
        "templates": [{"server": "s", "uriTemplate": "test://{n}", "name": "any"}],
        "text": "zero",
        "json": {"one": 1},
        // The code has the bytes; only a reply leaves out what is binary.
        "binary": "A A E C",
        "both": ["zero", "one"],
        "prompts": [{"server": "s", "name": "greet", "description": "Greets.",
            "arguments": [{"name": "who"}]}],
        "prompt": {"messages": [
            {"role": "user", "content": {"type": "text", "text": "Hello Ada"}}]},
    });
    assert_eq!(value(client, code), expected);
}

#[test]
fn every_language_reads() {
    let client = &mut client();
    let mut check = |language: &str, code: &str, expected: Value| {
        let said = client.call("execute_code", &json!({"language": language, "code": code}));
        let text = said.fine();
        let actual = serde_json::from_str(&text).unwrap_or(Value::String(text));
        assert_eq!(actual, expected, "{language}");
    };
    let expected = json!([3, "zero", "Hello you", 1]);
    let python = "a = await resources.list('s')\n\
        b = resources.read('s', 'test://0').result()\n\
        c = (await prompts.get('s', 'greet'))['messages'][0]['content']['text']\n\
        [len(a), b, c, len(prompts.list('s').result())]";
    check("python", python, expected.clone());
    let node = "return [(await resources.list('s')).length, await resources.read('s', 'test://0'),
        (await prompts.get('s', 'greet')).messages[0].content.text,
        (await prompts.list('s')).length];";
    check("node", node, expected);
    check("bash", "mcp read s test://0; mcp resources s | grep -o n2", json!("zero\nn2"));
    check("bash", "mcp prompt s greet --who 5 | grep -o 'Hello 5'", json!("Hello 5"));
}

#[test]
fn what_cannot_be_read_says_why() {
    let client = &mut client();
    let caught = |client: &mut Client, code: &str| {
        value(client, &format!("try {{ return await {code} }} catch (e) {{ return e.message }}"))
    };
    let sorry = "server \"s\", resource \"test://9\": no such resource";
    assert_eq!(caught(client, "resources.read('s', 'test://9')"), sorry);
    let sorry = "no server \"x\"; search for one with searchTools(\"..\")";
    assert_eq!(caught(client, "resources.read('x', 'test://0')"), sorry);
    let sorry = "a uri has 1 to 8192 bytes; this one has 9000";
    assert_eq!(caught(client, "resources.read('s', 'x'.repeat(9000))"), sorry);
}

#[test]
fn only_servers_that_may_be_called_are_read_and_each_time_counts() {
    let client = &mut client();
    let code = "let said; try { await resources.read('s', 'test://0') } catch (e) { said = e.code }
        return [said, (await resources.list()).map(r => r.server)];";
    let narrowed = json!({"code": code, "allowed_servers": ["t"]});
    let said = client.call("execute_code", &narrowed).fine();
    assert_eq!(said, r#"["SERVER_NOT_ALLOWED",["t","t","t"]]"#);
    let code = "for (;;) await resources.read('s', 'test://0');";
    let said = client.call("execute_code", &json!({"code": code, "max_tool_calls": 3})).failed();
    assert!(said.starts_with("MAX_TOOL_CALLS_EXCEEDED"), "{said}");
}

#[test]
fn a_real_server_is_read() {
    let Some(world) = World::find() else { return };
    let client = &mut world.client();
    let code = "const r = await resources.list('everything');
        const first = await resources.read('everything', r[0].uri);
        const prompt = await prompts.get('everything', 'simple-prompt');
        const none = await resources.list('time');
        return [r.length > 0, typeof first, prompt.messages[0].content.text, none];";
    let expected = json!([true, "string", "This is a simple prompt without arguments.", []]);
    assert_eq!(value(client, code), expected);
}
