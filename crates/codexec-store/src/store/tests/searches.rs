//! Searches for executions, and tool calls.

use codexec_types::SessionId;

use super::*;
use crate::{LogPage, LogQuery};

fn query_call() -> CallStart<'static> {
    let after = Duration::ZERO;
    CallStart { server: "db", tool: "query", args: "{}", kept_bytes: 1 << 20, after }
}

#[tokio::test]
async fn executions_are_found_by_their_fields() {
    let (store, _home) = store().await;
    let session = SessionId::from_bits(9);
    let thrown = Thrown {
        code: ThrownCode::RuntimeError,
        message: "ModuleNotFoundError: No module named 'pandas'".to_owned(),
        at: None,
        stack: None,
    };
    let outcomes = [
        Outcome::Returned(Json::null()),
        Outcome::Threw(thrown),
        Outcome::Stopped(Limit::Wall),
        Outcome::Cancelled,
        Outcome::Stopped(Limit::Memory),
    ];
    for (n, outcome) in (1..).zip(&outcomes) {
        let id = ExecutionId::from_bits(n);
        let code = format!("import pandas as pd\ndf{n} = pd.read_csv('data.csv')");
        begin(&store, &id, &code, at(n as u64 * 1_000)).await.unwrap();
        if n == 2 {
            let call = query_call();
            store.begin_call(&id, 1, &call).await.unwrap();
        }
        store.finish(&id, finish(RecordEnding::Outcome(outcome))).await.unwrap();
    }
    logs::begin_in(&store, &ExecutionId::from_bits(6), &session, at(6_000)).await;

    let any = LogQuery { limit: 20, ..LogQuery::default() };
    let text = |text: &str| LogQuery { text: Some(text.to_owned()), ..any.clone() };
    let tool = |tool: &str| LogQuery { tool: Some(tool.to_owned()), ..any.clone() };
    let kind = |kind| LogQuery { status: Some(kind), ..any.clone() };
    check(&store, any.clone(), "6 5 4 3 2 1 of 6").await;
    check(&store, kind(CoarseStatus::Success), "1 of 1").await;
    check(&store, kind(CoarseStatus::Failed), "5 2 of 2").await;
    check(&store, kind(CoarseStatus::Timeout), "3 of 1").await;
    check(&store, kind(CoarseStatus::Cancelled), "4 of 1").await;
    check(&store, kind(CoarseStatus::Running), "6 of 1").await;
    check(&store, kind(CoarseStatus::Interrupted), " of 0").await;
    check(
        &store,
        LogQuery { language: Some("typescript".to_owned()), ..any.clone() },
        "6 5 4 3 2 1 of 6",
    )
    .await;
    check(&store, LogQuery { language: Some("python".to_owned()), ..any.clone() }, " of 0").await;
    check(&store, LogQuery { session: Some(session), ..any.clone() }, "6 of 1").await;
    check(
        &store,
        LogQuery { since: Some(at(2_000)), until: Some(at(4_000)), ..any.clone() },
        "4 3 2 of 3",
    )
    .await;
    check(&store, LogQuery { limit: 2, offset: 1, ..any.clone() }, "5 4 of 6").await;
    for name in ["query", "db.query", "db:query", "mcp__db__query"] {
        check(&store, tool(name), "2 of 1").await;
    }
    check(&store, tool("other.query"), " of 0").await;
    check(&store, text("pandas"), "5 4 3 2 1 of 5").await;
    check(&store, text("ModuleNotFound"), "2 of 1").await;
    check(&store, text("pd.read_csv df3"), "3 of 1").await;
    check(&store, text("hello"), "5 4 3 2 1 of 5").await;
    check(&store, text("PANDAS nowhere"), " of 0").await;
    check(&store, LogQuery { limit: 1, offset: 3, ..text("pandas") }, "2 of 5").await;
    let narrow =
        LogQuery { status: Some(CoarseStatus::Failed), since: Some(at(3_000)), ..text("pandas") };
    check(&store, narrow, "5 of 1").await;

    let page = store.search(&text("ModuleNotFound"), &ALL).await.unwrap();
    let found = &page.results[0];
    assert_eq!(found.error.as_deref(), Some("ModuleNotFoundError: No module named 'pandas'"));
    assert!(found.code.starts_with("import pandas as pd\n"));
}

#[tokio::test]
async fn query_texts_are_words_and_never_operators() {
    let (store, _home) = store().await;
    let id = ExecutionId::from_bits(1);
    begin(&store, &id, "alpha AND beta", at(0)).await.unwrap();
    store.finish(&id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await.unwrap();
    let check = async |text: &str, total: u64| {
        let query = LogQuery { text: Some(text.to_owned()), limit: 9, ..LogQuery::default() };
        let page =
            store.search(&query, &ALL).await.unwrap_or_else(|err| panic!("{text:?}: {err:?}"));
        assert_eq!(page.total, total, "{text:?}");
    };
    check("alpha", 1).await;
    check("  alpha\n beta\t", 1).await;
    check("alpha\0beta", 1).await;
    check("\"alpha\"", 1).await;
    check("alpha*", 1).await;
    check("ALPHA", 1).await;
    check("alpha OR nothing", 0).await;
    check("alpha NOT beta", 0).await;
    check("NEAR(alpha beta)", 0).await;
    check("code:alpha", 0).await;
    check("^alpha", 1).await;
    check("{code} : x", 0).await;
    check("'; DROP TABLE executions; --", 0).await;
    check("\"", 0).await;
    check("\"\"\"", 0).await;
    check("* ^ - + ( ) : { }", 0).await;
    check("(a+)+$ .* [^]", 0).await;
    check("", 1).await;
    check(" \n", 1).await;
    check(&"\"alpha ".repeat(100_000), 1).await;
    check(&"ä".repeat(5_000), 0).await;
    check("\u{202e}\u{fffd}", 0).await;
    let query = LogQuery { limit: u32::MAX, offset: u64::MAX, ..LogQuery::default() };
    assert_eq!(store.search(&query, &ALL).await.unwrap(), LogPage { results: vec![], total: 1 });
}

#[tokio::test]
async fn a_call_has_a_row_before_it_is_sent() {
    let (store, _home) = store().await;
    let id = ExecutionId::from_bits(1);
    let call = CallStart {
        server: "db",
        tool: "query",
        args: r#"{"n":1}"#,
        kept_bytes: 1 << 20,
        after: Duration::from_millis(7),
    };
    let err = store.begin_call(&id, 1, &call).await.unwrap_err();
    assert_eq!(err.code(), "store_not_running", "no execution, no call");
    begin(&store, &id, "1", at(0)).await.unwrap();
    store.begin_call(&id, 1, &call).await.unwrap();
    let long = format!("\"{}\"", "x".repeat(300_000));
    store.begin_call(&id, 2, &CallStart { args: &long, ..call }).await.unwrap();
    store.begin_call(&id, 3, &call).await.unwrap();
    let begun = store.get(&id, &ALL).await.unwrap().unwrap().calls;
    assert_eq!((begun.len(), begun[0].duration), (3, None));
    assert_eq!(begun[0].after, Some(Duration::from_millis(7)));
    assert_eq!((begun[1].args.len(), begun[1].args_bytes), (64 << 10, 300_002));

    let end = CallEnd { error: None, duration: Duration::from_millis(1), result_bytes: 3 };
    store.finish_call(&id, 1, end).await;
    store.finish_call(&id, 2, CallEnd { result_bytes: 300_002, ..end }).await;
    store.finish(&id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await.unwrap();
    let calls = store.get(&id, &ALL).await.unwrap().unwrap().calls;
    assert_eq!((calls[0].result_bytes, calls[1].result_bytes), (Some(3), Some(300_002)));
    assert_eq!((calls[1].duration, calls[2].duration), (Some(Duration::from_millis(1)), None));
    assert_eq!(store.begin_call(&id, 4, &call).await.unwrap_err().code(), "store_not_running");
    let totals = store.count_totals(&ALL).await.unwrap();
    assert_eq!((totals.calls, totals.result_bytes), (2, 300_005), "those that were answered");
    assert_eq!((totals.shown_bytes, totals.saved_bytes), (8, 299_997));
    let others = ReadScope::Of(Identity::parse("token:ann").unwrap());
    assert_eq!(store.count_totals(&others).await.unwrap().calls, 0);
}

/// A session may have many calls with long errors, which must not all wait in memory.
#[tokio::test]
async fn many_ends_of_calls_are_written_before_the_execution_ends() {
    let (store, _home) = store().await;
    let id = ExecutionId::from_bits(1);
    begin(&store, &id, "1", at(0)).await.unwrap();
    let message = "x".repeat(4_096);
    for number in 0..300 {
        let call = CallStart {
            server: "db",
            tool: "query",
            args: "{}",
            kept_bytes: 1 << 20,
            after: Duration::ZERO,
        };
        store.begin_call(&id, number, &call).await.unwrap();
        let error = Some(("UPSTREAM_ERROR", message.as_str()));
        let end = CallEnd { error, duration: Duration::ZERO, result_bytes: 1 };
        store.finish_call(&id, number, end).await;
    }
    let calls = store.get(&id, &ALL).await.unwrap().unwrap().calls;
    let written = calls.iter().filter(|call| call.result_bytes.is_some()).count();
    assert!((200..300).contains(&written), "{written}");
}

#[track_caller]
fn check(store: &Store, query: LogQuery, expected: &str) -> impl Future<Output = ()> {
    let (store, expected) = (store.clone(), expected.to_owned());
    async move {
        let page = store.search(&query, &ALL).await.unwrap();
        let bits = |id: &ExecutionId| {
            id.as_str().trim_start_matches("exec_").trim_start_matches('0').to_owned()
        };
        let found: Vec<String> = page.results.iter().map(|found| bits(&found.summary.id)).collect();
        assert_eq!(format!("{} of {}", found.join(" "), page.total), expected, "{query:?}");
    }
}
