use serde_json::json;

use super::*;

fn words(line: &str) -> Vec<String> {
    line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Describes the meaning of a command line in one line.
fn meaning(line: &str) -> String {
    match request::parse(words(line)) {
        Ok(McpRequest::Usage) => "usage".to_owned(),
        Ok(McpRequest::AllTools { is_pretty }) => format!("all tools {is_pretty}"),
        Ok(McpRequest::Show { files }) => format!("show {}", files.join(" ")),
        Ok(McpRequest::Ask { ask, is_pretty }) => {
            format!("{} {is_pretty}", serde_json::to_string(&ask).expect("an ask"))
        }
        Ok(McpRequest::Prompt { server, name, options }) => {
            let flags: Vec<String> = options.flags.into_iter().map(|flag| flag.name).collect();
            format!("prompt {server} {name} {}", flags.join(" "))
        }
        Ok(McpRequest::Call { target, options }) => {
            let flags: Vec<String> = options
                .flags
                .iter()
                .map(|flag| format!("{}={}", flag.name, flag.value.as_deref().unwrap_or("(alone)")))
                .collect();
            let json = match options.json {
                None => String::new(),
                Some(JsonSource::Stdin) => " stdin".to_owned(),
                Some(JsonSource::Text(text)) => format!(" {text}"),
            };
            let pretty = if options.is_pretty { " pretty" } else { "" };
            format!("{target:?} {}{json}{pretty}", flags.join(" "))
        }
        Err(message) => format!("error: {message}"),
    }
}

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(meaning(line), expected, "mcp {line}");
}

#[test]
fn calls() {
    let pair = r#"Pair { server: "a", tool: "b" }"#;
    check("a b", &format!("{pair} "));
    check("a b --x 1 --y=2 --z", &format!("{pair} x=1 y=2 z=(alone)"));
    check("a b --x -5 --y=--z --w --v", &format!("{pair} x=-5 y=--z w=(alone) v=(alone)"));
    check("a b --x= --y=a=b", &format!("{pair} x= y=a=b"));
    check("a b --json {} --pretty --x 1", &format!("{pair} x=1 {{}} pretty"));
    check("a b --json -", &format!("{pair}  stdin"));
    check("a b --json=-", &format!("{pair}  stdin"));
    check("call a.b --x 1", r#"Joined("a.b") x=1"#);
    check("call mcp__search__b", r#"Joined("mcp__search__b") "#);
}

#[test]
fn resources_and_prompts() {
    check("resources", r#"{"resources":{"server":null}} false"#);
    check("resources a --pretty", r#"{"resources":{"server":"a"}} true"#);
    check("templates a", r#"{"resource_templates":{"server":"a"}} false"#);
    check("read a x://y", r#"{"read_resource":{"server":"a","uri":"x://y"}} false"#);
    check("read a", "error: mcp read takes a server and a uri, like docs file:///a.md");
    check("resources a b", "error: mcp resources takes one server, or none for all");
    check("prompts", r#"{"prompts":{"server":null}} false"#);
    check("prompt a b --x 1 --y", "prompt a b x y");
    check("prompt --help", "usage");
    let missing = "mcp prompt takes a server and a name, like github review --file a.rs";
    check("prompt a", &format!("error: {missing}"));
    // A server of that name is still called.
    check("call resources.get --x 1", r#"Joined("resources.get") x=1"#);
}

#[test]
fn questions() {
    check("search create an issue", r#"{"search":{"query":"create an issue","limit":10}} false"#);
    check("search x --limit 3 --pretty", r#"{"search":{"query":"x","limit":3}} true"#);
    check("search x --limit=3", r#"{"search":{"query":"x","limit":3}} false"#);
    check(
        "search x --server=a --read-only --detail full",
        r#"{"search":{"query":"x","limit":10,"server":"a","kind":"read_only","detail":"full"}} false"#,
    );
    check("search --safe", r#"{"search":{"query":"","limit":10,"kind":"safe"}} false"#);
    check("search x --detail all", "error: --detail takes names, summary or full");
    check("tools", "all tools false");
    check("tools github", r#"{"tool_names":{"server":"github"}} false"#);
    check("schema a.b --pretty", r#"{"schema":{"name":"a.b"}} true"#);
    check("help", "usage");
    check("--help", "usage");
    check("-h", "usage");
    check("help a.b", r#"{"help":{"name":"a.b"}} false"#);
    check("help a b", r#"{"help":{"name":"a.b"}} false"#);
    check("a --help", r#"{"help":{"name":"a"}} false"#);
    check("a b --help", r#"{"help":{"name":"a.b"}} false"#);
    check("call --help", "usage");
}

#[test]
fn wrong_usage_is_explained() {
    check("", "error: no tool is named; write for example mcp github get_issue --id 1");
    check(
        "github",
        "error: no tool of that server is named; write for example mcp github get_issue",
    );
    check(
        "github --x 1",
        "error: no tool of that server is named; write for example mcp github get_issue",
    );
    check("a b 5", "error: \"5\" has no name; write --name 5, or --json '{..}'");
    check("a b --json", "error: --json takes JSON, or - for standard input");
    check("--x", "error: --x comes before the server's name");
    check("call", "error: no tool is named; write for example mcp call github.get_issue");
    check("search", "error: no search words; write for example mcp search create issue");
    check("search x --limit many", "error: --limit takes a number from 1 to 1000");
    check("search x --limit", "error: --limit takes a number from 1 to 1000");
    check("tools a b", "error: mcp tools takes one server, or none for all");
    check("schema", "error: mcp schema takes one tool, like github.get_issue");
    check("tools --all", "error: unknown flag --all");
    check("a b -- x", "error: `--` is not a flag; write --name value");
}

fn options(line: &str) -> CallOptions {
    match request::parse(words(&format!("a b {line}"))) {
        Ok(McpRequest::Call { options, .. }) => options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_schema_is_requested_only_for_ambiguous_values() {
    let needs = |line: &str| flag_values::needs_schema(&options(line).flags);
    for line in ["--x 5", "--x true", "--x null", "--x [1]", "--x {a", "--x 1e3", "--a-b c"] {
        assert!(needs(line), "{line}");
    }
    for line in ["", "--x", "--x abc", "--x 1.2.3", "--x \"q\"", "--x=", "--json {\"a\":5}"] {
        assert!(!needs(line), "{line}");
    }
}

#[test]
fn values_get_the_types_in_the_schema() {
    let schema = json!({"properties": {
        "text": {"type": "string"},
        "n": {"type": "integer"},
        "f": {"type": "number"},
        "is": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "object": {"type": "object"},
        "maybe_text": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "maybe_n": {"type": ["integer", "null"]},
        "choice": {"enum": ["1", "2"]},
        "free": {},
    }});
    let check = |line: &str, expected: &str| {
        let args = flag_values::convert_flags(&options(line).flags, Some(&schema));
        assert_eq!(Value::Object(args).to_string(), expected, "{line}");
    };
    check("--text 5", r#"{"text":"5"}"#);
    check("--text null --text2 x", r#"{"text":"null","text2":"x"}"#);
    check("--n 5 --f 1.5 --is false", r#"{"n":5,"f":1.5,"is":false}"#);
    check("--n five", r#"{"n":"five"}"#);
    check("--is", r#"{"is":true}"#);
    check("--list [\"a\"]", r#"{"list":["a"]}"#);
    check("--list 5", r#"{"list":["5"]}"#);
    check("--list 1 --list 2", r#"{"list":["1","2"]}"#);
    check("--numbers 1 --numbers 2", r#"{"numbers":[1,2]}"#);
    check("--object {\"a\":1}", r#"{"object":{"a":1}}"#);
    check("--maybe_text 5", r#"{"maybe_text":"5"}"#);
    check("--maybe_text null", r#"{"maybe_text":null}"#);
    check("--maybe-n 5", r#"{"maybe_n":5}"#);
    check("--choice 1", r#"{"choice":"1"}"#);
    check("--free 5 --unknown [1] --other [", r#"{"free":5,"unknown":[1],"other":"["}"#);
}

#[test]
fn without_a_schema_values_are_parsed_as_json() {
    let args =
        flag_values::convert_flags(&options("--a 5 --b x --c --d {} --e 1 --e x").flags, None);
    assert_eq!(Value::Object(args), json!({"a": 5, "b": "x", "c": true, "d": {}, "e": [1, "x"]}));
}

#[test]
fn strings_print_raw_and_json_on_one_line() {
    let text = |json: &str, is_pretty| {
        CommandOutput::Json { json: Json::parse(json.to_owned()).expect("json"), is_pretty }.text()
    };
    assert_eq!(text("\"a\\nb\"", false), "a\nb\n");
    assert_eq!(text("{\"a\": [1,\n 2]}", false), "{\"a\":[1,2]}\n");
    assert_eq!(text("{\"a\":1}", true), "{\n  \"a\": 1\n}\n");
    let found = Json::parse(r#"[{"server":"a","tool":"b","name":"x"},{}]"#.to_owned());
    assert_eq!(tool_names(&found.expect("json")).text(), r#"["a.b"]"#);
}

#[test]
fn errors_print_their_code() {
    let error = CallError::new(codexec_types::CallCode::ToolNotFound, "no such tool");
    assert_eq!(McpCommandError::Refused(error).to_string(), "TOOL_NOT_FOUND: no such tool");
}

#[test]
fn images_are_shown_by_file_name() {
    check("show a.png b.jpg", "show a.png b.jpg");
    check("show", "error: no image is named; write for example mcp show plot.png");
    check("show --help", "usage");
}
