//! The path of a call, against the scripted server.

use std::path::PathBuf;

use codexec_mcp_config::StdioConfig;
use codexec_types::{CallCode, ToolDetail, ToolKind, ToolPattern};
use serde_json::{Value, json};

use super::*;
use crate::Warden;

fn gateway() -> Gateway {
    let issue = json!({"name": "get-issue", "description": "Reads an issue. More.", "inputSchema": {
        "type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}});
    gateway_of(&[
        ("my-hub", json!({"tools": ["echo"], "raw_tools": [issue]})),
        ("other", json!({"tools": ["echo", "only_here"]})),
    ])
}

fn gateway_of(servers: &[(&str, Value)]) -> Gateway {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripted.py");
    let server = |(name, plan): &(&str, Value)| {
        let program = StdioConfig {
            command: "python3".to_owned(),
            args: vec!["-S".to_owned(), script.display().to_string(), plan.to_string()],
            ..StdioConfig::default()
        };
        ServerConfig::stdio(ServerName::new(name).expect("a name"), program, PathBuf::new())
    };
    Gateway::new(
        servers.iter().map(server).collect(),
        GatewaySettings::new(
            vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
            Warden::none(),
        ),
    )
}

fn only(patterns: &[&str]) -> ToolFilter {
    let parse = |pattern: &&str| ToolPattern::parse(pattern, &[]).expect("a pattern");
    ToolFilter::only(patterns.iter().map(parse).collect())
}

async fn ask(gateway: &Gateway, ask: Ask, allowed: &ToolFilter) -> Result<Value, String> {
    match gateway.answer(ask, allowed, Language::TypeScript).await {
        Ok(answer) => Ok(answer.to_value().expect("JSON")),
        Err(err) => {
            let code = serde_json::to_value(err.code).expect("a code");
            Err(format!("{}: {}", code.as_str().expect("text"), err.message))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "so that a case is written in place")]
fn call_named(name: &str, args: Value) -> Ask {
    Ask::Named { name: name.to_owned(), args: Json::from_value(&args) }
}

#[tokio::test]
async fn names_resolve_and_arguments_are_checked() {
    let gateway = gateway();
    let all = ToolFilter::all();
    for name in ["mcp__my-hub__get-issue", "my_hub.get_issue", "my-hub:get-issue", "get-issue"] {
        assert_eq!(
            ask(&gateway, call_named(name, json!({"id": 1})), &all).await,
            Ok(json!({"id": 1}))
        );
    }
    let check = async |name: &str, args: Value, expected: &str| {
        assert_eq!(ask(&gateway, call_named(name, args), &all).await, Err(expected.to_owned()));
    };
    let wrong = "INVALID_ARGS: my-hub.get-issue: `id` is missing; parameters: id (required)";
    check("my_hub.get_issue", json!({}), wrong).await;
    let shape = "INVALID_ARGS: arguments must be one object of named parameters, like {\"id\": 1}";
    check("my_hub.get_issue", json!([1]), shape).await;
    let near = "TOOL_NOT_FOUND: no tool \"get_isue\" on server \"my-hub\"; did you mean get-issue?";
    check("my_hub.get_isue", json!({}), near).await;
    let several =
        "TOOL_NOT_FOUND: several servers have a tool \"echo\": my-hub.echo, other.echo; say which";
    check("echo", json!({}), several).await;
    let unknown =
        Ask::Tool { server: "my-hup".to_owned(), tool: "echo".to_owned(), args: Json::null() };
    let near = "TOOL_NOT_FOUND: no server \"my-hup\"; did you mean my-hub?";
    assert_eq!(ask(&gateway, unknown, &all).await, Err(near.to_owned()));
    gateway.shutdown().await;
}

#[tokio::test]
async fn only_allowed_tools_are_called_or_listed() {
    let gateway = gateway();
    let allowed = only(&["other.echo"]);
    let denied =
        gateway.answer(call_named("my-hub.echo", json!({})), &allowed, Language::Bash).await;
    assert_eq!(denied.expect_err("denied").code, CallCode::ServerNotAllowed);
    assert_eq!(gateway.health()[0].state, ServerState::Idle, "a denied server is not started");
    let tool = "TOOL_NOT_ALLOWED: tool \"other.only_here\" may not be called";
    let actual = ask(&gateway, call_named("other.only_here", json!({})), &allowed).await;
    assert_eq!(actual, Err(tool.to_owned()));
    assert_eq!(ask(&gateway, call_named("other.echo", json!({})), &allowed).await, Ok(json!({})));
    let names: Vec<String> =
        gateway.list(&allowed).await.into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["other.echo"]);
    assert_eq!(gateway.list(&only(&[])).await, []);
    // Permission depends on the tool that an alias stands for.
    let real = only(&["my-hub.get-issue"]);
    let issue = call_named("my_hub.get_issue", json!({"id": 2}));
    assert_eq!(ask(&gateway, issue, &real).await, Ok(json!({"id": 2})));
    gateway.shutdown().await;
}

#[tokio::test]
async fn listing_servers_starts_none() {
    let gateway = gateway();
    let idle = |name: &str, alias: &str| json!({"name": name, "alias": alias, "state": "idle"});
    let both = json!([idle("my-hub", "my_hub"), idle("other", "other")]);
    assert_eq!(ask(&gateway, Ask::Servers {}, &ToolFilter::all()).await, Ok(both));
    let names = Ask::ToolNames { server: "my-hub".to_owned() };
    ask(&gateway, names, &ToolFilter::all()).await.expect("listed");
    let known = ask(&gateway, Ask::Servers {}, &only(&["my-hub.echo"])).await.expect("told");
    let about = json!([{"name": "my-hub", "alias": "my_hub", "state": "ready",
        "description": "echo", "tools": 1}]);
    assert_eq!(known, about);
    assert_eq!(ask(&gateway, Ask::Servers {}, &only(&[])).await, Ok(json!([])));
    gateway.shutdown().await;
}

#[tokio::test]
async fn guests_can_search_and_list_tools() {
    let gateway = gateway();
    let all = ToolFilter::all();
    let names = Ask::ToolNames { server: "my_hub".to_owned() };
    assert_eq!(ask(&gateway, names, &all).await, Ok(json!(["echo", "get-issue"])));

    let search = Ask::Search {
        query: "read issues".to_owned(),
        limit: 1,
        server: None,
        kind: ToolKind::Any,
        detail: ToolDetail::Summary,
    };
    let found = ask(&gateway, search, &all).await.expect("found");
    let signature = "\"get-issue\"(args: { id: number }): Promise<unknown>";
    let issue = json!([{"name": "my-hub.get-issue", "server": "my-hub", "tool": "get-issue",
        "description": "Reads an issue.", "signature": signature}]);
    assert_eq!(found, issue);

    let narrowed = |server: &str, kind| Ask::Search {
        query: String::new(),
        limit: 10,
        server: Some(server.to_owned()),
        kind,
        detail: ToolDetail::Names,
    };
    let found = ask(&gateway, narrowed("other", ToolKind::Any), &all).await.expect("found");
    let names: Vec<&Value> = found.as_array().expect("a list").iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["other.echo", "other.only_here"], "an empty query lists");
    let found = ask(&gateway, narrowed("other", ToolKind::ReadOnly), &all).await;
    assert_eq!(found, Ok(json!([])), "nothing is said of them, so they may change things");
    let unknown = ask(&gateway, narrowed("othr", ToolKind::Any), &all).await;
    let near = "TOOL_NOT_FOUND: no server \"othr\"; did you mean other?";
    assert_eq!(unknown, Err(near.to_owned()));

    let discover = Ask::Discover { words: vec!["ISSUE".to_owned()] };
    let found = ask(&gateway, discover, &all).await.expect("found");
    assert_eq!(found[0]["name"], "mcp__my-hub__get-issue");
    assert_eq!(found[0]["parameters"]["required"], json!(["id"]));

    let schema = Ask::Schema { name: "get-issue".to_owned() };
    let found = ask(&gateway, schema, &all).await.expect("found");
    assert_eq!(found["inputSchema"]["required"], json!(["id"]));

    let about = Ask::Help { name: Some("my-hub".to_owned()) };
    let text = "my-hub: 2 tools\n  echo(): Promise<unknown>  // Answers by echo.\n  \
                \"get-issue\"(args: { id: number }): Promise<unknown>  // Reads an issue.\n";
    assert_eq!(ask(&gateway, about, &all).await, Ok(json!(text)));
    let about = ask(&gateway, Ask::Help { name: None }, &all).await.expect("a text");
    let servers = about.as_str().and_then(|text| text.split_once("Servers:\n")).expect("a list").1;
    assert_eq!(servers, "  my-hub (2 tools)\n  other (2 tools)\n");
    gateway.shutdown().await;
}

/// The server and tool that each name resolves to.
#[tokio::test]
async fn colliding_names_are_resolved() {
    let gateway = gateway_of(&[
        ("a", json!({"tools": ["b__c", "c", "get-issue", "get.issue", "x/y", "d.e", "läuft"]})),
        ("a__b", json!({"tools": ["c", "only"]})),
        ("x-y_z", json!({"tools": ["t"]})),
        ("x_y-z", json!({"tools": ["t"]})),
        ("d", json!({"tools": ["other"]})),
        ("my-hub", json!({"tools": ["t"]})),
        ("my_hub", json!({"tools": ["t", "u"]})),
    ]);
    let all = ToolFilter::all();
    let resolve = async |name: &str| {
        let tool = gateway.schema(name, &all, codexec_typings::TypingsLanguage::TypeScript).await;
        tool.map(|tool| tool.name).map_err(|err| err.message)
    };
    // On a busy machine seven servers take longer to start than a caller waits.
    let is_starting = |error: &String| error.contains("is still starting");
    let check = async |name: &str, expected: Result<&str, &str>| {
        let mut actual = resolve(name).await;
        while actual.as_ref().is_err_and(is_starting) {
            actual = resolve(name).await;
        }
        assert_eq!(actual, expected.map(ToOwned::to_owned).map_err(ToOwned::to_owned), "{name}");
    };
    // Both have exact names, so only a dot distinguishes them.
    let both = "several tools go by \"a__b__c\": a__b.c, a.b__c; use the exact name";
    check("a__b__c", Err(both)).await;
    check("mcp__a__b__c", Err(&both.replace("\"a__b", "\"mcp__a__b"))).await;
    check("a.b__c", Ok("a.b__c")).await;
    check("a__b.c", Ok("a__b.c")).await;
    check("a__b__only", Ok("a__b.only")).await;
    check("mcp__a__c", Ok("a.c")).await;
    check("a.get-issue", Ok("a.get-issue")).await;
    check("a.get.issue", Ok("a.get.issue")).await;
    let alike = "several tools go by \"get_issue\": a.get-issue, a.get.issue; use the exact name";
    check("a.get_issue", Err(alike)).await;
    check("a.x_y", Ok("a.x/y")).await;
    check("a/x/y", Ok("a.x/y")).await;
    check("mcp__a__läuft", Ok("a.läuft")).await;
    // Resolves to the tool named `d.e`, because server `d` has no tool `e`.
    check("d.e", Ok("a.d.e")).await;
    check("d.other", Ok("d.other")).await;
    check("x-y_z.t", Ok("x-y_z.t")).await;
    let alike = "several tools go by \"x_y_z.t\": x-y_z.t, x_y-z.t; use the exact name";
    check("x_y_z.t", Err(alike)).await;
    check("my_hub.t", Ok("my_hub.t")).await;
    check("my_hub.u", Ok("my_hub.u")).await;
    check("my-hub.t", Ok("my-hub.t")).await;
    let names = Ask::ToolNames { server: "x_y_z".to_owned() };
    let alike = "TOOL_NOT_FOUND: several servers go by \"x_y_z\": x-y_z, x_y-z; use the exact name";
    assert_eq!(ask(&gateway, names, &all).await, Err(alike.to_owned()));
    gateway.shutdown().await;
}

async fn answer(gateway: &Gateway, ask: Ask, language: Language) -> Value {
    let answer = gateway.answer(ask, &ToolFilter::all(), language).await.expect("an answer");
    answer.to_value().expect("JSON")
}

#[tokio::test]
async fn answers_use_the_guests_language() {
    let gateway = gateway();
    let signature = |language| {
        let ask = Ask::Search {
            query: "read issues".to_owned(),
            limit: 1,
            server: None,
            kind: ToolKind::Any,
            detail: ToolDetail::Summary,
        };
        let gateway = &gateway;
        async move { answer(gateway, ask, language).await[0]["signature"].clone() }
    };
    let typescript = "\"get-issue\"(args: { id: number }): Promise<unknown>";
    assert_eq!(signature(Language::Node).await, typescript);
    assert_eq!(signature(Language::JavaScript).await, typescript);
    assert_eq!(signature(Language::Python).await, "get_issue(*, id: int) -> Any");
    assert_eq!(signature(Language::Bash).await, "mcp my-hub get-issue --id <number>");

    let schema = || Ask::Schema { name: "get-issue".to_owned() };
    let python = answer(&gateway, schema(), Language::Python).await;
    let stub = "# await tools.my_hub.get_issue(..)\nasync def get_issue(*, id: int) -> Any:\n    \
                \"\"\"Reads an issue.\"\"\"";
    assert_eq!([&python["python"], &python["typescript"]], [&json!(stub), &Value::Null]);
    let typescript = answer(&gateway, schema(), Language::TypeScript).await;
    let declared = "declare const tools: { \"my-hub\": {\n  /** Reads an issue. */\n  \
                    \"get-issue\"(args: { id: number }): Promise<unknown>;\n} };";
    assert_eq!(
        [&typescript["typescript"], &typescript["python"]],
        [&json!(declared), &Value::Null]
    );

    let help = |name: Option<&str>| Ask::Help { name: name.map(str::to_owned) };
    let about = answer(&gateway, help(Some("get-issue")), Language::Bash).await;
    let text = "my-hub.get-issue\nReads an issue. More.\n\nmcp my-hub get-issue\n  --id <number>, required";
    assert_eq!(about, text);
    for (language, call) in [
        (Language::TypeScript, "await tools.SERVER.TOOL({..})"),
        (Language::Python, "await tools.SERVER.TOOL(name=value)"),
        (Language::Bash, "mcp SERVER TOOL --name value"),
    ] {
        let overview = answer(&gateway, help(None), language).await;
        assert!(overview.as_str().is_some_and(|text| text.contains(call)), "{overview}");
    }
    gateway.shutdown().await;
}

#[tokio::test]
async fn observed_results_describe_tools_without_output_schema() {
    let gateway = gateway();
    let schema = || Ask::Schema { name: "get-issue".to_owned() };
    let before = answer(&gateway, schema(), Language::TypeScript).await;
    assert_eq!(before["observedOutput"], Value::Null);
    answer(&gateway, call_named("get-issue", json!({"id": 7})), Language::TypeScript).await;
    let after = answer(&gateway, schema(), Language::TypeScript).await;
    let seen = "\"get-issue\"(args: { id: number }): Promise</* observed */ { id: number }>";
    assert_eq!(after["signature"], seen);
    assert_eq!(after["observedOutput"]["required"], json!(["id"]));
    let about = Ask::Help { name: Some("my-hub".to_owned()) };
    let python = answer(&gateway, about, Language::Python).await;
    let line = "get_issue(*, id: int) -> {\"id\": int}  # observed  # Reads an issue.";
    assert!(python.as_str().is_some_and(|text| text.contains(line)), "{python}");
    gateway.shutdown().await;
}
