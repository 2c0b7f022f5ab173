//! Saved lists and quarantine, against a real process that lists the tools it is told to.

use std::{path::Path, time::Duration};

use codexec_files::{hash_json, sealed_files};
use codexec_mcp_config::{ServerConfig, ServerOptions, StdioConfig, TransportConfig, TrustMode};
use codexec_types::{Ask, CallError, Json, ServerName, ToolFilter};
use serde_json::{Value, json};

use crate::{
    Gateway, GatewaySettings, MissingReason, MissingServer, SearchQuery, ServerState,
    ToolCacheMode, Warden,
};

fn settings(home: &Path) -> GatewaySettings {
    let env = vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
    GatewaySettings {
        startup_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(20),
        catalogue_wait: Duration::from_secs(20),
        home: Some(home.to_owned()),
        ..GatewaySettings::new(env, Warden::none())
    }
}

/// Writes the plan to a file, so that the server's behaviour can change while its entry stays the
/// same.
fn server(home: &Path, name: &str, plan: &Value) -> ServerConfig {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripted.py");
    let file = home.join(format!("{name}.plan"));
    std::fs::write(&file, plan.to_string()).expect("written");
    let start = format!("exec python3 -S {} \"$(cat {})\"", script.display(), file.display());
    let program = StdioConfig {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), start],
        ..StdioConfig::default()
    };
    ServerConfig::stdio(ServerName::new(name).expect("a name"), program, home.to_owned())
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

fn plan(tools: &[Value]) -> Value {
    json!({"tools": ["become", "lists"], "raw_tools": tools})
}

/// The list after `become`; it must still contain `become` and `lists`.
fn list_after_become(tools: &[Value]) -> Value {
    let own = ["become", "lists"].map(|name| tool(name, &format!("Answers by {name}.")));
    Value::Array(own.iter().chain(tools).cloned().collect())
}

fn gateway(home: &Path, plan: &Value) -> Gateway {
    Gateway::new(vec![server(home, "s", plan)], settings(home))
}

async fn call(gateway: &Gateway, tool: &str, args: Value) -> Result<Value, CallError> {
    let args = Json::from_value(&args);
    let ask = Ask::Tool { server: "s".to_owned(), tool: tool.to_owned(), args };
    let answer =
        gateway.answer(ask, &ToolFilter::all(), codexec_types::Language::TypeScript).await?;
    Ok(answer.to_value().expect("JSON"))
}

async fn names(gateway: &Gateway) -> Vec<String> {
    gateway.list(&ToolFilter::all()).await.into_iter().map(|tool| tool.tool).collect()
}

#[track_caller]
fn check_held(actual: Result<Value, CallError>, tool: &str, why: &str) {
    let expected = format!(
        "tool \"s.{tool}\" is in quarantine: {why}; the user can review and approve it \
         with `codexec servers approve s`"
    );
    let error = actual.expect_err("in quarantine");
    assert_eq!((error.message, error.code), (expected, codexec_types::CallCode::ToolQuarantined));
}

/// Lists saved by another process answer at once, although the server hangs.
#[tokio::test]
async fn saved_lists_answer_before_the_server_does() {
    let home = tempfile::tempdir().expect("a folder");
    let first = gateway(home.path(), &plan(&[tool("echo", "Says it.")]));
    assert_eq!(names(&first).await, ["become", "lists", "echo"]);
    first.shutdown().await;

    let second = gateway(home.path(), &json!({"start": "hang"}));
    let query = SearchQuery { text: "echo".to_owned(), limit: 1, ..SearchQuery::default() };
    let found = second.search(&query, &ToolFilter::all()).await.expect("found");
    assert_eq!(found.tools[0].name, "s.echo");
    assert_eq!(found.missing, []);
    let schema = second
        .schema("s.echo", &ToolFilter::all(), codexec_typings::TypingsLanguage::TypeScript)
        .await
        .expect("known");
    assert_eq!(schema.description.as_deref(), Some("Says it."));
    // The server is started in the background.
    let starting = async {
        while second.health()[0].state != ServerState::Starting {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), starting).await.expect("begun");
    let health = &second.health()[0];
    assert_eq!((health.tools, health.stale), (Some(3), false));
    second.shutdown().await;
}

#[tokio::test]
async fn a_fresh_saved_list_can_replace_the_server() {
    let home = tempfile::tempdir().expect("a folder");
    let with = |cache: ToolCacheMode, plan: &Value| {
        let settings = GatewaySettings { cache, ..settings(home.path()) };
        Gateway::new(vec![server(home.path(), "s", plan)], settings)
    };
    let first = with(ToolCacheMode::Instead, &plan(&[]));
    assert_eq!(names(&first).await, ["become", "lists"]);
    assert_eq!(first.health()[0].state, ServerState::Ready, "nothing was on disk");
    first.shutdown().await;
    let second = with(ToolCacheMode::Instead, &plan(&[tool("new", "")]));
    assert_eq!(names(&second).await, ["become", "lists"]);
    assert_eq!(second.health()[0].state, ServerState::Idle);
    // A call reaches the server itself.
    assert_eq!(call(&second, "new", json!({})).await, Ok(json!({})));
    second.shutdown().await;
    let third = with(ToolCacheMode::Never, &plan(&[]));
    assert_eq!(names(&third).await, ["become", "lists"]);
    assert_eq!(third.health()[0].state, ServerState::Ready);
    third.shutdown().await;
}

/// An expired list is used, and reported as stale.
#[tokio::test]
async fn an_expired_list_is_used_and_reported_as_stale() {
    let home = tempfile::tempdir().expect("a folder");
    let mut quick = plan(&[]);
    quick["ttl_ms"] = json!(1_000);
    let first = gateway(home.path(), &quick);
    assert_eq!(names(&first).await, ["become", "lists"]);
    // The list has expired when the server has been asked again.
    let again = async { while call(&first, "lists", json!({})).await == Ok(json!(1)) {} };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("listed again");
    first.shutdown().await;

    let path = home.path().join("cache/tools/s.json");
    let text = std::fs::read_to_string(&path).expect("kept");
    let mut cache: Value =
        serde_json::from_str(text.split_once('\n').expect("two").1).expect("JSON");
    assert_eq!(cache["life_ms"], 1_000);
    cache["listed_at_ms"] = json!(1);
    sealed_files::write(&path, "list 1", &cache.to_string()).expect("written");
    let second = gateway(home.path(), &json!({"start": "die"}));
    let reply = second.search(&SearchQuery::default(), &ToolFilter::all()).await.expect("found");
    assert_eq!(reply.tools[0].name, "s.become");
    let server = ServerName::new("s").expect("a name");
    assert_eq!(reply.missing, [MissingServer { server, reason: MissingReason::Stale }]);
    assert!(second.health()[0].stale);
    second.shutdown().await;
}

/// FS-017 and similar: no content of the cache file makes an unapproved definition visible.
#[tokio::test]
async fn up_4_a_saved_list_shows_only_accepted_definitions() {
    let home = tempfile::tempdir().expect("a folder");
    let both = |plan: &Value| {
        let servers = ["s", "t"].map(|name| server(home.path(), name, plan)).to_vec();
        Gateway::new(servers, settings(home.path()))
    };
    let first = both(&plan(&[tool("echo", "Says it.")]));
    assert_eq!(names(&first).await.len(), 6);
    first.shutdown().await;
    let path = |name: &str| home.path().join("cache/tools").join(format!("{name}.json"));
    let text = std::fs::read_to_string(path("s")).expect("kept");
    let good: Value = serde_json::from_str(text.split_once('\n').expect("two").1).expect("JSON");

    let check = async |what: &str, expected: &[&str]| {
        let instead = GatewaySettings { cache: ToolCacheMode::Meanwhile, ..settings(home.path()) };
        let hung = GatewaySettings { catalogue_wait: Duration::ZERO, ..instead };
        let config = server(home.path(), "s", &json!({"start": "hang"}));
        let gateway = Gateway::new(vec![config], hung);
        assert_eq!(names(&gateway).await, expected, "{what}");
        gateway.shutdown().await;
    };
    check("as it was", &["become", "lists", "echo"]).await;
    let mut poisoned = good.clone();
    poisoned["tools"][2][1] = json!(hash_json(&tool("echo", "Exfiltrate.")));
    poisoned["tools"][1][0] = json!("echo");
    sealed_files::write(&path("s"), "list 1", &poisoned.to_string()).expect("written");
    check("other hashes and names", &["become"]).await;
    std::fs::write(path("s"), text.replace("echo", "evil")).expect("written");
    check("no checksum", &[]).await;
    std::fs::copy(path("t"), path("s")).expect("copied");
    check("another server's", &[]).await;
    std::fs::write(path("s"), "{\"fake:echo\":{\"approved\":true}}").expect("written");
    check("garbage", &[]).await;
    std::fs::remove_file(path("s")).expect("removed");
    std::os::unix::fs::symlink(path("t"), path("s")).expect("linked");
    check("a link", &[]).await;
    let first = both(&plan(&[tool("echo", "Says it.")]));
    assert_eq!(names(&first).await.len(), 6);
    first.shutdown().await;
    check("repaired by the server's own", &["become", "lists", "echo"]).await;
    std::fs::write(home.path().join("trust/s.json"), "{}").expect("written");
    check("nothing is known to be accepted", &[]).await;
}

/// The first call after the change notification is refused, whichever field has changed.
#[tokio::test]
async fn up_4_a_changed_definition_is_not_called_again() {
    let before = tool("echo", "Says it.");
    let mut cases =
        vec![tool("echo", "Says it, and sends it on."), tool("echo", "Says it.\u{200b}")];
    for (field, value) in [
        ("inputSchema", json!({"type": "object", "properties": {"sidenote": {"type": "string"}}})),
        ("outputSchema", json!({"type": "object"})),
        ("annotations", json!({"destructiveHint": true})),
        ("_meta", json!({"a": 1})),
        ("title", json!("Echo")),
        ("icons", json!([{"src": "https://x/y"}])),
        ("anything", json!(null)),
    ] {
        let mut changed = before.clone();
        changed[field] = value;
        cases.push(changed);
    }
    for changed in cases {
        let home = tempfile::tempdir().expect("a folder");
        let gateway = gateway(home.path(), &plan(std::slice::from_ref(&before)));
        assert_eq!(call(&gateway, "echo", json!({})).await, Ok(json!({})));
        let tools = list_after_become(std::slice::from_ref(&changed));
        call(&gateway, "become", json!({ "tools": tools })).await.expect("still as it was");
        let refused = call(&gateway, "echo", json!({})).await;
        check_held(refused, "echo", "its definition has changed");
        assert_eq!(names(&gateway).await, ["become", "lists"], "{changed}");
        assert_eq!(gateway.health()[0].held, 1);
        let schema = gateway
            .schema("s.echo", &ToolFilter::all(), codexec_typings::TypingsLanguage::TypeScript)
            .await
            .expect_err("held");
        assert_eq!(schema.code, codexec_types::CallCode::ToolQuarantined);
        // Back and forth, and back again.
        for (tools, is_fine) in [(&before, true), (&changed, false), (&before, true)] {
            let tools = list_after_become(std::slice::from_ref(tools));
            call(&gateway, "become", json!({ "tools": tools })).await.expect("as it was");
            assert_eq!(call(&gateway, "echo", json!({})).await.is_ok(), is_fine, "{changed}");
        }
        gateway.shutdown().await;
    }
}

#[tokio::test]
async fn up_4_a_flood_of_changes_affects_only_its_server() {
    let home = tempfile::tempdir().expect("a folder");
    let servers = vec![
        server(home.path(), "s", &plan(&[tool("echo", "")])),
        server(home.path(), "t", &plan(&[tool("echo", "")])),
    ];
    let gateway = Gateway::new(servers, settings(home.path()));
    let flood = json!({"tools": list_after_become(&[tool("echo", "")]), "times": 5_000});
    call(&gateway, "become", flood).await.expect("as it was");
    assert_eq!(call(&gateway, "echo", json!({})).await, Ok(json!({})));
    let lists = call(&gateway, "lists", json!({})).await.expect("a number");
    assert!(lists.as_u64().expect("a number") <= 4, "listed {lists} times");
    gateway.shutdown().await;
}

/// A server that announces a change but does not list its tools is not called.
#[tokio::test]
async fn up_4_waiting_for_a_missing_list_times_out() {
    let home = tempfile::tempdir().expect("a folder");
    let mut once = plan(&[tool("echo", "")]);
    once["lists"] = json!(1);
    let short = GatewaySettings { call_timeout: Duration::from_secs(1), ..settings(home.path()) };
    let gateway = Gateway::new(vec![server(home.path(), "s", &once)], short);
    call(&gateway, "become", json!({"tools": list_after_become(&[])})).await.expect("as it was");
    let error = call(&gateway, "echo", json!({})).await.expect_err("unknown");
    let why = "server \"s\": it announced a change of its tools, but did not list them";
    assert_eq!(error.message, why);
    gateway.shutdown().await;
}

#[tokio::test]
async fn up_4_approvals_persist_and_the_cache_approves_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let first = gateway(home.path(), &plan(&[tool("echo", "One.")]));
    assert_eq!(call(&first, "echo", json!({})).await, Ok(json!({})));
    first.shutdown().await;
    let second = gateway(home.path(), &plan(&[tool("echo", "Two.")]));
    // The saved list still has the tool, but that does not permit a call.
    check_held(call(&second, "echo", json!({})).await, "echo", "its definition has changed");

    let name = ServerName::new("s").expect("a name");
    let waiting = second.fetch_pending_approvals(&name).await.expect("known");
    let lines: Vec<String> = waiting[0].diff_lines().into_iter().map(|line| line.text).collect();
    assert_eq!(lines, ["description: One.", "description: Two."]);
    // Another process approves, and this one notices.
    let other = gateway(home.path(), &plan(&[tool("echo", "Two.")]));
    other.approve(&name, &waiting).await.expect("written");
    assert_eq!(call(&second, "echo", json!({})).await, Ok(json!({})));
    assert_eq!(names(&second).await, ["become", "lists", "echo"]);
    second.shutdown().await;
    // A new version does not replace what was approved by hand.
    let mut third = plan(&[tool("echo", "Three.")]);
    third["version"] = json!("2");
    let third = gateway(home.path(), &third);
    check_held(call(&third, "echo", json!({})).await, "echo", "its definition has changed");
    third.shutdown().await;
}

#[tokio::test]
async fn up_4_each_trust_mode_holds_the_right_tools() {
    let check = async |mode: TrustMode, then: &Value, expected: &[&str]| {
        let home = tempfile::tempdir().expect("a folder");
        let with = |plan: &Value| {
            let mut config = server(home.path(), "s", plan);
            config.narrow = ServerOptions { trust: Some(mode), ..ServerOptions::default() };
            Gateway::new(vec![config], settings(home.path()))
        };
        let first = with(&plan(&[tool("a", "1")]));
        names(&first).await;
        first.shutdown().await;
        let second = with(then);
        second.fetch_pending_approvals(&ServerName::new("s").expect("a name")).await.expect("up");
        assert_eq!(call(&second, "lists", json!({})).await.is_ok(), expected.contains(&"lists"));
        assert_eq!(names(&second).await, expected, "{mode:?} {then}");
        second.shutdown().await;
    };
    let mut newer = plan(&[tool("a", "2"), tool("b", "1")]);
    check(TrustMode::Auto, &newer, &["become", "lists", "b"]).await;
    check(TrustMode::Ask, &newer, &["become", "lists"]).await;
    check(TrustMode::Manual, &newer, &[]).await;
    newer["version"] = json!("2");
    check(TrustMode::Auto, &newer, &["become", "lists", "a", "b"]).await;
    check(TrustMode::Ask, &newer, &["become", "lists"]).await;
}

#[tokio::test]
async fn up_4_resources_of_a_held_server_are_not_read() {
    let home = tempfile::tempdir().expect("a folder");
    let mut config = server(home.path(), "s", &plan(&[tool("a", "1")]));
    config.narrow = ServerOptions { trust: Some(TrustMode::Manual), ..ServerOptions::default() };
    let gateway = Gateway::new(vec![config], settings(home.path()));
    let language = codexec_types::Language::TypeScript;
    for ask in [
        Ask::Resources { server: Some("s".to_owned()) },
        Ask::ReadResource { server: "s".to_owned(), uri: "file:///a".to_owned() },
        Ask::Prompt { server: "s".to_owned(), name: "p".to_owned(), args: Json::null() },
    ] {
        let refused = gateway.answer(ask, &ToolFilter::all(), language).await.expect_err("held");
        assert_eq!(refused.code, codexec_types::CallCode::ToolQuarantined, "{}", refused.message);
    }
    gateway.shutdown().await;
}

/// A damaged approvals file approves nothing.
#[tokio::test]
async fn up_4_damaged_approvals_approve_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("trust/s.json");
    let first = gateway(home.path(), &plan(&[tool("echo", "One.")]));
    assert_eq!(call(&first, "echo", json!({})).await, Ok(json!({})));
    first.shutdown().await;
    let whole = std::fs::read(&path).expect("kept");
    let lost = "the approvals of this server can no longer be read";
    let check = async |what: &str| {
        let gateway = gateway(home.path(), &plan(&[tool("echo", "One.")]));
        let refused = call(&gateway, "echo", json!({})).await;
        assert!(refused.is_err(), "{what}");
        check_held(refused, "echo", lost);
        assert_eq!(names(&gateway).await, [] as [&str; 0], "{what}");
        gateway.shutdown().await;
    };
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("written");
    check("half of it").await;
    std::fs::write(&path, b"\xff\x00garbage").expect("written");
    check("garbage").await;
    std::fs::write(&path, "").expect("written");
    check("nothing").await;
    sealed_files::write(&path, "trust 1", "{\"pins\":{}}").expect("written");
    check("another shape").await;
    let elsewhere = home.path().join("elsewhere.json");
    std::fs::write(&elsewhere, &whole).expect("written");
    std::fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink(&elsewhere, &path).expect("linked");
    check("a link").await;
    // Approving moves the damaged file aside and starts a new one.
    let gateway = gateway(home.path(), &plan(&[tool("echo", "One.")]));
    let name = ServerName::new("s").expect("a name");
    let waiting = gateway.fetch_pending_approvals(&name).await.expect("up");
    assert_eq!(waiting.len(), 3);
    gateway.approve(&name, &waiting[2..]).await.expect("written");
    assert_eq!(call(&gateway, "echo", json!({})).await, Ok(json!({})));
    assert_eq!(names(&gateway).await, ["echo"]);
    assert!(home.path().join("trust/s.json.corrupt").is_symlink());
    gateway.shutdown().await;
}

#[tokio::test]
async fn switched_off_tools_are_not_listed_or_called() {
    let home = tempfile::tempdir().expect("a folder");
    let mut config = server(home.path(), "s", &plan(&[tool("echo", ""), tool("put-it", "")]));
    config.narrow.disabled_tools = vec!["put*".to_owned()];
    let gateway = Gateway::new(vec![config], settings(home.path()));
    assert_eq!(names(&gateway).await, ["become", "lists", "echo"]);
    let why = "tool \"s.put-it\" is switched off in the settings of server \"s\"";
    for name in ["put-it", "put_it"] {
        assert_eq!(call(&gateway, name, json!({})).await.expect_err("off").message, why);
    }
    gateway.shutdown().await;
}

/// The entry now names another program, so the old approvals do not apply.
#[tokio::test]
async fn up_4_another_program_of_the_same_name_is_another_server() {
    let home = tempfile::tempdir().expect("a folder");
    let with = |args: Option<&str>| {
        let mut config = server(home.path(), "s", &plan(&[tool("echo", "One.")]));
        config.narrow.trust = Some(TrustMode::Ask);
        if let (Some(more), TransportConfig::Stdio(program)) = (args, &mut config.transport) {
            program.args.push(more.to_owned());
        }
        Gateway::new(vec![config], settings(home.path()))
    };
    let first = with(None);
    assert_eq!(call(&first, "echo", json!({})).await, Ok(json!({})));
    first.shutdown().await;
    let second = with(Some("other"));
    let why = "another program or URL has this server's name now";
    check_held(call(&second, "echo", json!({})).await, "echo", why);
    let name = ServerName::new("s").expect("a name");
    let waiting = second.fetch_pending_approvals(&name).await.expect("known");
    second.approve(&name, &waiting).await.expect("written");
    assert_eq!(call(&second, "echo", json!({})).await, Ok(json!({})));
    second.shutdown().await;
}
