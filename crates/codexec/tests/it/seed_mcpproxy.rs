//! The toolset `mcpproxy` is a contract: what MCPProxy's page says is sent to the real binary with
//! real servers behind it, and docs/reference/seed-004.md names every case.

mod calls;
mod command_line;
mod configuration;
mod scripts;

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Client, keep_settings};
use crate::world::World;

const CASES: &str = include_str!("seed_mcpproxy/cases.toml");
const PAGE: &str = include_str!("../../../../docs/reference/seed-004.md");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

/// The texts of JSON are written as such: they are what a client sends and gets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    seed: String,
    code: Option<String>,
    language: Option<String>,
    input: Option<String>,
    options: Option<String>,
    /// Instead of all of these.
    arguments: Option<String>,
    expect: String,
    /// The second text of the reply.
    output: Option<String>,
    #[serde(default)]
    is_error: bool,
}

/// The two texts of a reply, and whether it says `isError`.
#[derive(Debug)]
struct Reply {
    value: Value,
    output: Option<String>,
    is_error: bool,
}

fn cases() -> Vec<Case> {
    toml::from_str::<Cases>(CASES).expect("cases").case
}

/// A client of a server that has chosen the toolset.
fn client(servers: &Value) -> Client {
    Client::with(servers, |command| {
        command.args(["--toolset", "mcpproxy"]);
    })
}

/// Files for the cases that read some.
fn fill(world: &World) {
    let repos = json!([
        {"name": "one", "stargazers_count": 5, "language": "Rust", "archived": false, "pushed_at": "2026-05-01"},
        {"name": "two", "stargazers_count": 3, "language": "Rust", "archived": true, "pushed_at": "2026-05-01"},
        {"name": "three", "language": null, "archived": false, "pushed_at": "2020-01-01"},
    ]);
    let files = [
        ("user.json", json!({"login": "octocat"})),
        ("repos.json", repos),
        ("item-1.json", json!({"id": 1})),
        ("item-3.json", json!({"id": 3})),
    ];
    for (name, content) in files {
        std::fs::write(world.folder.path().join(name), content.to_string()).expect("written");
    }
}

fn run(client: &mut Client, arguments: &Value) -> Reply {
    let call = json!({"name": "code_execution", "arguments": arguments});
    let reply = client.request("tools/call", &call);
    let result = &reply["result"];
    let text = |at: usize| result["content"][at]["text"].as_str();
    let first = text(0).unwrap_or_else(|| panic!("no text in {reply}"));
    Reply {
        value: serde_json::from_str(first).unwrap_or_else(|_| panic!("not JSON: {first}")),
        output: text(1).map(ToOwned::to_owned),
        is_error: result["isError"].as_bool().unwrap_or(false),
    }
}

impl Case {
    fn arguments(&self, folder: &str) -> Value {
        let read = |text: &String| -> Value {
            serde_json::from_str(&text.replace("{dir}", folder)).expect("JSON")
        };
        if let Some(arguments) = &self.arguments {
            return read(arguments);
        }
        let fields = [
            ("code", self.code.clone().map(Value::String)),
            ("language", self.language.clone().map(Value::String)),
            ("input", self.input.as_ref().map(read)),
            ("options", self.options.as_ref().map(read)),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(given.collect())
    }

    /// What is wrong with a reply, if anything is.
    fn problem(&self, reply: &Reply) -> Option<String> {
        let expected: Value = serde_json::from_str(&self.expect).expect("JSON");
        let is_same = fits(&expected, &reply.value)
            && reply.output == self.output
            && reply.is_error == self.is_error;
        (!is_same).then(|| format!("{} ({}): {reply:?}, expected {expected}", self.name, self.seed))
    }
}

/// The same keys in the same order, and the same values.
fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(any), Value::String(text)) if any == "*" => !text.is_empty(),
        (Value::Object(expected), Value::Object(actual)) => {
            expected.keys().eq(actual.keys())
                && expected.iter().all(|(key, value)| fits(value, &actual[key]))
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| fits(expected, actual))
        }
        (expected, actual) => expected == actual,
    }
}

#[test]
fn every_case_of_the_seed_holds() {
    let Some(world) = World::find() else { return };
    fill(&world);
    let folder = world.folder.path().to_str().expect("text").to_owned();
    let mut client = client(&world.servers);
    let problems: Vec<String> = cases()
        .iter()
        .filter_map(|case| case.problem(&run(&mut client, &case.arguments(&folder))))
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_page_names_every_case_and_no_other() {
    let cases = cases();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    let rows = PAGE.lines().skip_while(|line| *line != "## Cases").filter_map(|line| {
        let (case, _) = line.strip_prefix("| `")?.split_once('`')?;
        Some(case)
    });
    assert_eq!(rows.collect::<BTreeSet<_>>(), names);
}

#[test]
fn the_list_is_constant_and_within_its_budget() {
    let mut client = client(&json!({}));
    let list = client.request("tools/list", &json!({}))["result"].clone();
    let tools = list["tools"].as_array().expect("a list");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["code_execution", "retrieve_tools", "call_tool"]);
    let tokens = list.to_string().chars().count().div_ceil(4);
    assert!(tokens <= 700, "{tokens}");
    let mut both = Client::with(&json!({}), |command| {
        command.args(["--toolset", "compact,mcpproxy"]);
    });
    let list = both.request("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().expect("a list");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let all =
        ["code_execution", "retrieve_tools", "call_tool", "execute_code", "search_tools", "health"];
    assert_eq!(names, all);
}

/// More at once than there are workers: those that find none wait, and each gets its own answer.
#[test]
fn executions_wait_for_a_free_worker() {
    let mut client = Client::with(&json!({}), |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        keep_settings(&home, "[workers]\nmax = 2\n");
        command.args(["--toolset", "mcpproxy"]);
    });
    let call = |n: u64| json!({"code": "input.n * 2", "input": {"n": n}});
    let ids: Vec<u64> = (0..20).map(|n| client.send_call("code_execution", &call(n))).collect();
    for (n, id) in (0..20).zip(ids) {
        assert_eq!(client.wait_call(id).fine(), format!("{{\"ok\":true,\"value\":{}}}", n * 2));
    }
}

/// An agent's context is small: what is too long is cut and says where the whole is.
#[test]
fn a_long_value_is_cut_and_stays_json() {
    let mut client = client(&json!({}));
    let fits = run(&mut client, &json!({"code": "'x'.repeat(9998)"}));
    assert_eq!(fits.value, json!({"ok": true, "value": "x".repeat(9_998)}));
    let cut = run(&mut client, &json!({"code": "'x'.repeat(9999)"}));
    let keys: Vec<&String> = cut.value.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["ok", "value", "truncated"]);
    let text = cut.value["value"].as_str().expect("text");
    assert!(text.starts_with("[cut: 10001 characters,"), "{text:.200}");
    let address = text.split_once("codexec://").and_then(|(_, rest)| rest.split_once(']'));
    let address = format!("codexec://{}", address.expect("an address").0);
    let whole = client.request("resources/read", &json!({"uri": address}));
    let whole = whole["result"]["contents"][0]["text"].as_str().expect("text");
    assert!(whole.contains(&"x".repeat(9_999)), "{whole:.100}");
}

#[test]
fn the_settings_for_replies_apply() {
    let mut client = Client::with(&json!({}), |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        keep_settings(&home, "[replies]\nmax-chars = 200\nhead = 40\ntail = 40\n");
        command.args(["--toolset", "mcpproxy"]);
    });
    let said = run(&mut client, &json!({"code": "'a'.repeat(300)"}));
    let value = said.value["value"].as_str().expect("a text");
    assert_eq!(said.value["truncated"], json!(true), "{value}");
    assert!(value.contains("the first 40 and the last 40 are shown"), "{value}");
    let said = run(&mut client, &json!({"code": "'a'.repeat(100)"}));
    assert_eq!(said.value, json!({"ok": true, "value": "a".repeat(100)}));
}

/// Whatever is long: all texts of a reply share one budget.
#[test]
fn everything_in_a_reply_shares_one_budget() {
    let mut client = client(&json!({}));
    let deep = "const f = n => { if (n === 0) throw new Error('m'.repeat(20000)); f(n - 1); };";
    for code in [
        format!("log('o'.repeat(20000)); {deep} f(1000)"),
        "log('o'.repeat(20000)); 'v'.repeat(20000)".to_owned(),
        format!("{deep} f(1000)"),
    ] {
        let reply = run(&mut client, &json!({"code": code}));
        let output = reply.output.clone().unwrap_or_default();
        let chars = reply.value.to_string().chars().count() + output.chars().count();
        assert!((4_000..10_500).contains(&chars), "{chars}: {code}");
        assert_eq!(output.starts_with("[output]\n[cut: 20000 characters"), code.starts_with("log"));
        let text = &reply.value["value"].as_str().or(reply.value["error"]["message"].as_str());
        assert!(text.is_some_and(|text| text.starts_with("[cut: ")), "{reply:?}");
    }
}
