use super::*;

fn params(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(params) => params,
        other => panic!("{other}"),
    }
}

async fn asked(value: Value, can_show: CanShow) -> (Value, Option<Map<String, Value>>) {
    let (questions, mut seen) = mpsc::channel(1);
    let caller = Caller::default().asked_by(questions, can_show);
    let server = ServerName::new("s").expect("a name");
    let answer = caller.ask(&server, params(value));
    tokio::pin!(answer);
    let question = tokio::select! {
        answer = &mut answer => return (answer, None),
        question = seen.recv() => question.expect("a question"),
    };
    let shown = question.params.clone();
    question.answer(json!({"action": "accept", "content": {"a": 1}}));
    (answer.await, Some(shown))
}

const BOTH: CanShow = CanShow { forms: true, urls: true };

#[tokio::test]
async fn ask_1_a_human_is_shown_what_can_be_seen_and_no_strange_address() {
    let form = json!({"message": "na\u{200b}me?\u{1b}[2J", "requestedSchema": {
        "type": "object", "properties": {"a": {"type": "string", "title": "\u{202e}x"}}}});
    let (answer, shown) = asked(form.clone(), BOTH).await;
    assert_eq!(answer, json!({"action": "accept", "content": {"a": 1}}));
    let seen = json!({"message": "name?[2J", "requestedSchema": {
        "type": "object", "properties": {"a": {"type": "string", "title": "x"}}}});
    assert_eq!(shown, Some(params(seen)));

    let check = async |value: Value, can_show: CanShow| {
        assert_eq!(asked(value.clone(), can_show).await, (declined(), None), "{value}");
    };
    check(form, CanShow { forms: false, urls: true }).await;
    let url = |url: &str| json!({"mode": "url", "message": "m", "url": url, "elicitationId": "1"});
    check(url("https://a.example/"), CanShow { forms: true, urls: false }).await;
    for strange in ["javascript:alert(1)", "file:///etc/passwd", "-x", ""] {
        check(url(strange), BOTH).await;
    }
    assert!(asked(url("https://a.example/"), BOTH).await.1.is_some());
    check(json!({"message": "x".repeat(PARAMS_BYTES)}), BOTH).await;
}

#[tokio::test]
async fn who_does_not_answer_has_cancelled() {
    let (questions, mut seen) = mpsc::channel(1);
    let caller = Caller::default().asked_by(questions, BOTH);
    let server = ServerName::new("s").expect("a name");
    let human = async { drop(seen.recv().await.expect("a question")) };
    let (answer, ()) = tokio::join!(caller.ask(&server, params(json!({"message": "m"}))), human);
    assert_eq!(answer, cancelled());
    drop(seen);
    assert_eq!(caller.ask(&server, Map::new()).await, declined());
    assert_eq!(Caller::default().ask(&server, Map::new()).await, declined());
}
