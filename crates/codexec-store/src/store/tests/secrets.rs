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
        input: Json::parse(text("")).unwrap(),
        ..admitted_request(&text("key = "))
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
        .begin_call(
            &id,
            1,
            &CallStart {
                server: "a",
                tool: "b",
                args: &args,
                kept_bytes: 1 << 20,
                after: std::time::Duration::ZERO,
            },
        )
        .await
        .unwrap();
    let end = CallEnd {
        error: Some(("UPSTREAM_ERROR", &secret)),
        duration: Duration::ZERO,
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
