//! Secrets of known formats are never stored.

use super::*;
use crate::LogQuery;

#[tokio::test]
async fn secrets_are_masked_in_all_texts() {
    let (store, home) = store().await;
    let secret = format!("ghp_{}", "aB3".repeat(12));
    let id = ExecutionId::from_bits(1);
    let text = |before: &str| format!("{before}\"{secret}\"");
    let request = AdmissionRequest {
        args: vec![secret.clone()],
        language: Language::TypeScript,
        code: text("key = "),
        input: Json::parse(text("")).unwrap(),
        working_dir: None,
        asked: RequestedLimits::default(),
        view: ToolView::default(),
    };
    let begin = ExecutionStart {
        id: &id,
        admitted: &policy().admit(request, &[], None).unwrap(),
        started: at(0),
        session: None,
        script: None,
        context: &RequestOrigin::default(),
        principal: &local(),
    };
    store.begin(begin).await.unwrap();
    let args = text("");
    store
        .begin_call(&id, 1, &CallStart { server: "a", tool: "b", args: &args, kept_bytes: 1 << 20 })
        .await
        .unwrap();
    let end = CallEnd {
        error: Some(("UPSTREAM_ERROR", &secret)),
        duration: Duration::ZERO,
        result: Some(&args),
        result_bytes: 1,
    };
    store.finish_call(&id, 1, end).await;
    let thrown =
        Thrown { code: ThrownCode::RuntimeError, message: secret.clone(), at: None, stack: None };
    let output = GuestOutput::new(text("out "), vec![(0, 3)]);
    let outcome = Outcome::Threw(thrown);
    let finish = ExecutionEnd {
        output: &output,
        value: Some(&args),
        ..finish(RecordEnding::Outcome(&outcome))
    };
    store.finish(&id, finish).await.unwrap();
    let query = LogQuery { text: Some("key".to_owned()), limit: 1, ..LogQuery::default() };
    assert_eq!(store.search(&query, &ALL).await.unwrap().total, 1);
    store.flush().await.unwrap();

    let stored = store.get(&id, &ALL).await.unwrap().unwrap();
    assert_eq!(stored.code, "key = \"[masked:github-token]\"");
    assert_eq!(stored.args, ["[masked:github-token]"]);
    assert_eq!(stored.written.unwrap().stderr(), "out");
    drop(store);
    for file in ["codexec.db", "codexec.db-wal", "search.db", "search.db-wal"] {
        let bytes = fs::read(home.path().join(file)).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{file}");
    }
    let log = fs::read_to_string(home.path().join("logs/executions-1970-01-01.jsonl")).unwrap();
    assert!(!log.contains(&secret) && log.contains("masked:github-token"));
}

/// A test cannot see fsync, only that records are the same with it.
#[tokio::test]
async fn records_are_the_same_with_power_durability() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("codexec.db"), Durability::Power).await.unwrap();
    let ends = (0..20).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            let id = ExecutionId::from_bits(n);
            begin(&store, &id, "1", at(0)).await?;
            store.finish(&id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await
        })
    });
    for end in ends.collect::<Vec<_>>() {
        end.await.unwrap().unwrap();
    }
    store.flush().await.unwrap();
    assert_eq!(logs::lines(&home, "executions-1970-01-01.jsonl").len(), 20);
    let synchronous = |c: &Connection| c.query_row("PRAGMA synchronous", [], |r| r.get(0));
    let synchronous: u32 = store.queue(synchronous).await.unwrap();
    assert_eq!(synchronous, 2, "FULL");
}
