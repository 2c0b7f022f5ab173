//! Against a real process that misbehaves as told: `tests/scripted.py`.

use std::{path::PathBuf, time::Duration};

use codexec_types::{Ask, CallCode, CallError, Json, ServerName, ToolFilter};
use serde_json::{Value, json};

use crate::{
    Gateway, SearchQuery, Secret, ServerConfig, ServerState, Settings, StdioConfig,
    TransportConfig, Warden,
};

fn settings() -> Settings {
    let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8")];
    let env = env.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    Settings {
        startup_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(20),
        catalogue_wait: Duration::from_secs(10),
        ..Settings::new(env, Warden::none())
    }
}

#[track_caller]
fn server(name: &str, plan: &Value) -> ServerConfig {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripted.py");
    {
        let program = StdioConfig {
            command: "python3".to_owned(),
            args: vec!["-S".to_owned(), script.display().to_string(), plan.to_string()],
            ..StdioConfig::default()
        };
        ServerConfig::stdio(ServerName::new(name).expect("a name"), program, PathBuf::new())
    }
}

fn program(server: &mut ServerConfig) -> &mut StdioConfig {
    match &mut server.transport {
        TransportConfig::Stdio(program) => program,
        TransportConfig::Remote(remote) => panic!("{remote:?}"),
    }
}

fn gateway(plan: &Value) -> Gateway {
    Gateway::new(vec![server("s", plan)], settings())
}

async fn call(gateway: &Gateway, tool: &str, args: Value) -> Result<Value, CallError> {
    let ask =
        Ask::Tool { server: "s".to_owned(), tool: tool.to_owned(), args: Json::from_value(&args) };
    let answer = gateway.answer(ask, &ToolFilter::all()).await?;
    Ok(answer.to_value().expect("JSON"))
}

/// Calls one tool and then another: what the first does must not reach the second.
async fn check(plan: Value, tool: &str, expected: Result<Value, &str>) {
    let gateway = gateway(&plan);
    let actual = call(&gateway, tool, json!({})).await.map_err(|err| err.message);
    assert_eq!(actual, expected.map_err(str::to_owned));
    assert_eq!(call(&gateway, "echo", json!({"n": 1})).await, Ok(json!({"n": 1})));
    gateway.shutdown().await;
}

fn with_tool(tool: &str) -> Value {
    json!({ "tools": ["echo", tool] })
}

fn rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("VmHWM");
    line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") << 10
}

#[tokio::test]
async fn broken_text_is_repaired() {
    check(with_tool("lone_surrogate"), "lone_surrogate", Ok(json!("cut \u{fffd} here"))).await;
    check(with_tool("bad_utf8"), "bad_utf8", Ok(json!("caf\u{fffd}"))).await;
}

#[tokio::test]
async fn unknown_content_is_passed_on() {
    let block = json!({"type": "hologram", "beam": 1});
    check(with_tool("unknown_content"), "unknown_content", Ok(block)).await;
}

#[tokio::test]
async fn a_slow_drip_arrives_whole() {
    check(with_tool("drip"), "drip", Ok(json!("slow"))).await;
}

#[tokio::test]
async fn junk_between_answers_is_skipped() {
    check(with_tool("junk_then_echo"), "junk_then_echo", Ok(json!({}))).await;
}

#[tokio::test]
async fn errors_of_a_tool_are_the_callers() {
    check(with_tool("fails"), "fails", Err("s.fails: no such row")).await;
    check(with_tool("refuses"), "refuses", Err("server \"s\": bad id")).await;
}

#[tokio::test]
async fn nesting_without_end_fails_its_call() {
    let why = "server \"s\": the server's answer is not valid JSON (recursion limit exceeded at \
               line 1 column 160)";
    check(with_tool("deep"), "deep", Err(why)).await;
}

/// The server gives back the id as text. That is nobody's answer.
#[tokio::test]
async fn ids_are_not_matched_loosely() {
    let why = "server \"s\": the server answered with its request's id as a text; that is not MCP";
    check(with_tool("string_id"), "string_id", Err(why)).await;
}

#[tokio::test]
async fn long_lines_fail_their_call_and_cost_no_memory() {
    let before = rss_bytes();
    let over = "server \"s\": the server's answer is over the limit of 10 MiB; ask for less";
    check(with_tool("big_result"), "big_result", Err(over)).await;
    check(with_tool("nameless_line"), "nameless_line", Err(over)).await;
    // This one never ends its line: the call fails, and what follows on it is lost.
    let gateway = gateway(&with_tool("long_line"));
    let actual = call(&gateway, "long_line", json!({})).await.expect_err("too long");
    assert_eq!((actual.code, actual.message.as_str()), (CallCode::UpstreamError, over));
    gateway.shutdown().await;
    let grown = rss_bytes().saturating_sub(before);
    assert!(grown <= 64 << 20, "grew by {grown} bytes");
}

#[tokio::test]
async fn a_crash_fails_what_is_in_flight_and_the_next_call_restarts() {
    let gateway = gateway(&json!({}));
    let (hung, died) =
        tokio::join!(call(&gateway, "hang", json!({})), call(&gateway, "die", json!({})));
    let why = "server \"s\": it ended (exit status: 3; it said: out of cheese)";
    assert_eq!(hung.expect_err("died").message, why);
    assert_eq!(died.expect_err("died").message, why);
    assert_eq!(call(&gateway, "echo", json!({"n": 2})).await, Ok(json!({"n": 2})));
    assert_eq!(gateway.health()[0].state, ServerState::Ready);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why_and_when_to_retry() {
    let gateway = gateway(&json!({"start": "die"}));
    let why =
        "server \"s\": it did not start: no handshake: exit status: 4; it said: no config file";
    assert_eq!(call(&gateway, "echo", json!({})).await.expect_err("dead").message, why);
    let waiting = call(&gateway, "echo", json!({})).await.expect_err("dead");
    assert_eq!(waiting.code, CallCode::UpstreamError);
    assert_eq!(gateway.health()[0].state, ServerState::Failed);

    let mut missing = server("s", &json!({}));
    program(&mut missing).command = "no-such-program".to_owned();
    let gateway = Gateway::new(vec![missing], settings());
    let actual = call(&gateway, "echo", json!({})).await.expect_err("missing").message;
    let why = "server \"s\": it did not start: \"no-such-program\" could not be started: No such \
               file or directory (os error 2)";
    assert_eq!(actual, why);
}

#[tokio::test]
async fn garbage_before_the_handshake_is_skipped_within_a_budget() {
    check(json!({"garbage": true}), "echo", Ok(json!({}))).await;
    let gateway = gateway(&json!({"babble": 20_000}));
    let why = "server \"s\": it did not start: no handshake: its output is not MCP";
    assert_eq!(call(&gateway, "echo", json!({})).await.expect_err("babble").message, why);
}

#[tokio::test]
async fn a_flood_on_stderr_does_no_harm() {
    let before = rss_bytes();
    check(json!({"stderr_mb": 200}), "echo", Ok(json!({}))).await;
    assert!(rss_bytes().saturating_sub(before) <= 64 << 20);
}

#[tokio::test]
async fn a_server_without_a_proper_handshake_is_still_a_server() {
    check(json!({"capabilities": "yes"}), "echo", Ok(json!({}))).await;
}

#[tokio::test]
async fn bad_tools_cost_only_themselves() {
    let raw = json!([
        {"name": "no_schema"},
        {"name": "null_schema", "inputSchema": null},
        {"name": "true_schema", "inputSchema": true, "icons": "star", "outputSchema": true},
        {"name": "hints", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes"}},
        {"name": 7},
        {"name": ""},
        {"name": "in\u{200b}visible"},
        "not a tool",
        {"name": "echo"},
    ]);
    let gateway = gateway(&json!({"tools": ["echo"], "raw_tools": raw, "description_mb": 9}));
    let tools = gateway.list(&ToolFilter::all()).await;
    let names: Vec<&str> = tools.iter().map(|tool| tool.tool.as_str()).collect();
    assert_eq!(names, ["echo", "no_schema", "null_schema", "true_schema", "hints", "long"]);
    let long = gateway.schema("s.long", &ToolFilter::all()).await.expect("listed");
    assert!(long.description.expect("has one").len() <= 16 << 10);
    assert_eq!(gateway.health()[0].problems.len(), 5);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_list_over_the_limit_fails_its_server() {
    let gateway = gateway(&json!({"description_mb": 11}));
    let why = "server \"s\": it did not start: no list of tools: the server's answer is over the \
               limit of 10 MiB; ask for less";
    assert_eq!(call(&gateway, "echo", json!({})).await.expect_err("too long").message, why);
}

#[tokio::test]
async fn pages_without_end_are_cut() {
    let gateway = gateway(&json!({"pages": "endless"}));
    assert_eq!(gateway.list(&ToolFilter::all()).await.len(), 100);
    gateway.shutdown().await;
    check(json!({"pages": "repeated"}), "echo", Ok(json!({}))).await;
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    let gateway = gateway(&json!({"tools": ["echo", "change"]}));
    call(&gateway, "change", json!({})).await.expect("works");
    let added = async {
        while gateway.list(&ToolFilter::all()).await.len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), added).await.expect("listed again");
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_upstream() {
    let gateway = gateway(&json!({}));
    call(&gateway, "echo", json!({})).await.expect("works");
    let sent = async {
        while gateway.health()[0].calls < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = call(&gateway, "hang", json!({})) => unreachable!("it hangs"),
        () = async { sent.await; call(&gateway, "echo", json!({})).await.expect("works"); } => {}
    }
    let seen = async { while call(&gateway, "cancelled", json!({})).await == Ok(json!([])) {} };
    tokio::time::timeout(Duration::from_secs(10), seen).await.expect("told");
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_hung_server_delays_discovery_once() {
    let mut short = settings();
    short.catalogue_wait = Duration::from_secs(3);
    short.startup_timeout = Duration::from_secs(60);
    let servers = vec![server("good", &json!({})), server("hung", &json!({"start": "hang"}))];
    let gateway = Gateway::new(servers, short);
    let query = SearchQuery { text: "echo".to_owned(), limit: 5, ..SearchQuery::default() };
    let first = gateway.search(&query, &ToolFilter::all()).await.expect("found");
    assert_eq!(first.tools[0].name, "good.echo");
    assert_eq!(first.starting, [ServerName::new("hung").expect("a name")]);
    let asked = std::time::Instant::now();
    assert_eq!(gateway.search(&query, &ToolFilter::all()).await, Ok(first));
    assert!(asked.elapsed() < Duration::from_secs(1));
    gateway.shutdown().await;
}

#[tokio::test]
async fn nothing_of_a_server_survives_a_shutdown() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pid");
    let plan = json!({"grandchild": file.display().to_string(), "ignore_eof": true});
    let gateway = gateway(&plan);
    call(&gateway, "echo", json!({})).await.expect("works");
    let grandchild = std::fs::read_to_string(&file).expect("written before the handshake");
    let leader = gateway.health()[0].pid.expect("running").to_string();
    let asked = std::time::Instant::now();
    gateway.shutdown().await;
    assert!(asked.elapsed() <= Duration::from_millis(2_500));
    assert!(is_dead(&grandchild) && is_dead(&leader));
}

#[tokio::test]
async fn nothing_of_a_server_survives_the_last_handle() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pid");
    let plan = json!({"grandchild": file.display().to_string(), "ignore_eof": true});
    let gateway = gateway(&plan);
    call(&gateway, "echo", json!({})).await.expect("works");
    let grandchild = std::fs::read_to_string(&file).expect("written before the handshake");
    drop(gateway);
    let gone = async {
        while !is_dead(&grandchild) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("killed");
}

#[tokio::test]
async fn the_environment_is_what_was_given() {
    let mut config = server("s", &json!({"tools": ["environment"]}));
    program(&mut config).env = vec![("TOKEN".to_owned(), Secret::Plain("x".to_owned()))];
    let gateway = Gateway::new(vec![config], settings());
    let names = call(&gateway, "environment", json!({})).await;
    assert_eq!(names, Ok(json!(["LANG", "PATH", "TOKEN"])));
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_server_starts_once_for_all_who_need_it() {
    let gateway = gateway(&json!({}));
    let calls = (0..20).map(|n| call(&gateway, "echo", json!({ "n": n })));
    for (n, answer) in futures::future::join_all(calls).await.into_iter().enumerate() {
        assert_eq!(answer, Ok(json!({ "n": n })));
    }
    assert_eq!(call(&gateway, "count", json!({})).await, Ok(json!(21)));
    assert_eq!(gateway.health()[0].calls, 21);
    gateway.shutdown().await;
}

/// Gone, or a zombie that only its new parent can bury.
fn is_dead(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => true,
    }
}
