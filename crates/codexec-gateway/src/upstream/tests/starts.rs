//! How servers start.

use super::*;

#[tokio::test]
async fn a_server_that_cannot_start_says_why_and_when_to_retry() {
    let gateway = gateway(&json!({"start": "die"}));
    let why = "server \"s\": it did not start: MCP handshake failed: exit status: 4; stderr: no \
               config file";
    assert_eq!(call(&gateway, "echo", json!({})).await.expect_err("dead").message, why);
    let waiting = call(&gateway, "echo", json!({})).await.expect_err("dead");
    assert_eq!(waiting.code, CallCode::UpstreamError);
    assert_eq!(gateway.health()[0].state, ServerState::Failed);

    let mut missing = server("s", &json!({}));
    program(&mut missing).command = "no-such-program".to_owned();
    let gateway = Gateway::new(vec![missing], settings());
    let actual = call(&gateway, "echo", json!({})).await.expect_err("missing").message;
    let why = "server \"s\": it did not start: \"no-such-program\" was not found; install it, or \
               write its whole path";
    assert_eq!(actual, why);
}

#[tokio::test]
async fn garbage_before_the_handshake_is_skipped_within_a_budget() {
    check(json!({"garbage": true}), "echo", Ok(json!({}))).await;
    let gateway = gateway(&json!({"babble": 20_000}));
    let why = "server \"s\": it did not start: MCP handshake failed: its output is not MCP";
    assert_eq!(call(&gateway, "echo", json!({})).await.expect_err("babble").message, why);
}

#[tokio::test]
async fn a_flood_on_stderr_does_no_harm() {
    let before = rss_bytes();
    check(json!({"stderr_mb": 200}), "echo", Ok(json!({}))).await;
    assert!(rss_bytes().saturating_sub(before) <= 64 << 20);
}

#[tokio::test]
async fn an_invalid_handshake_field_is_tolerated() {
    check(json!({"capabilities": "yes"}), "echo", Ok(json!({}))).await;
}

/// Waits for no server at all: if it did, it would wait for the hung one for ten minutes.
#[tokio::test]
async fn a_server_that_hung_once_never_delays_a_search_again() {
    let home = tempfile::tempdir().expect("a folder");
    let hung = ServerName::new("hung").expect("a name");
    let start = |search_wait| {
        let mut patient = settings();
        patient.startup_timeout = Duration::from_secs(600);
        patient.catalogue_wait = Duration::from_secs(600);
        patient.search_wait = search_wait;
        patient.home = Some(home.path().to_owned());
        let servers = vec![server("good", &json!({})), server("hung", &json!({"start": "hang"}))];
        Gateway::new(servers, patient)
    };
    let query = SearchQuery { text: "echo".to_owned(), limit: 5, ..SearchQuery::default() };
    let first = start(SearchWait::FirstMatch(Duration::from_secs(600)));
    let found = first.search(&query, &ToolFilter::all()).await.expect("found");
    assert_eq!(found.tools[0].name, "good.echo");
    assert_eq!(found.missing.len(), 1);
    assert_eq!(found.missing[0].server, hung);
    let mark = home.path().join("cache/tools/hung.hung");
    while !mark.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let missing = [MissingServer { server: hung, reason: MissingReason::Hung }];
    let nothing = SearchQuery { text: "quaternion".to_owned(), ..query.clone() };
    let found = first.search(&nothing, &ToolFilter::all()).await.expect("found");
    assert_eq!((found.tools.as_slice(), found.missing.as_slice()), (&[][..], &missing[..]));
    assert!(first.health().iter().any(|server| server.describe_problem().is_some()));
    first.shutdown().await;

    for search_wait in
        [SearchWait::ResponsiveServers, SearchWait::FirstMatch(Duration::from_secs(600))]
    {
        let later = start(search_wait);
        let found = later.search(&nothing, &ToolFilter::all()).await.expect("found");
        assert_eq!((found.tools.as_slice(), found.missing.as_slice()), (&[][..], &missing[..]));
        let schema = Ask::Schema { name: "hung.echo".to_owned() };
        let unknown = later.answer(schema, &ToolFilter::all(), Language::TypeScript).await;
        assert_eq!(unknown.map(|json| json.text().to_owned()), Ok("null".to_owned()));
        let notes = later.take_notes();
        assert!(notes[0].ends_with("because they do not answer: hung"), "{notes:?}");
        assert!(notes[1].starts_with("the schema of \"hung.echo\" is null: server"), "{notes:?}");
        assert_eq!(later.take_notes(), Vec::<String>::new());
        later.shutdown().await;
    }
}

#[tokio::test]
async fn the_environment_has_only_configured_variables() {
    let mut config = server("s", &json!({"tools": ["environment"]}));
    program(&mut config).env = vec![("TOKEN".to_owned(), SecretSource::Plain("x".to_owned()))];
    let gateway = Gateway::new(vec![config], settings());
    let names = call(&gateway, "environment", json!({})).await;
    assert_eq!(names, Ok(json!(["LANG", "PATH", "TOKEN"])));
    gateway.shutdown().await;
}

#[tokio::test]
async fn concurrent_callers_share_one_start() {
    let gateway = gateway(&json!({}));
    let calls = (0..20).map(|n| call(&gateway, "echo", json!({ "n": n })));
    for (n, answer) in futures::future::join_all(calls).await.into_iter().enumerate() {
        assert_eq!(answer, Ok(json!({ "n": n })));
    }
    assert_eq!(call(&gateway, "count", json!({})).await, Ok(json!(21)));
    assert_eq!(gateway.health()[0].counts.calls, 21);
    gateway.shutdown().await;
}
