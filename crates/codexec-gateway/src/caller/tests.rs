use super::*;

fn params(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(params) => params,
        other => panic!("{other}"),
    }
}

fn elicitation(elicitation: ElicitationSupport) -> QuestionSupport {
    QuestionSupport { elicitation, ..QuestionSupport::default() }
}

async fn ask(value: Value, can_show: ElicitationSupport) -> (Value, Option<Map<String, Value>>) {
    let (questions, mut seen) = mpsc::channel(1);
    let caller = Caller::default().with_questions(questions, elicitation(can_show));
    let server = ServerName::new("s").expect("a name");
    let answer = caller.ask(&server, QuestionKind::Elicitation, params(value));
    tokio::pin!(answer);
    let question = tokio::select! {
        answer = &mut answer => return (answer.expect("a result"), None),
        question = seen.recv() => question.expect("a question"),
    };
    let shown = question.params.clone();
    question.answer(json!({"action": "accept", "content": {"a": 1}}));
    (answer.await.expect("a result"), Some(shown))
}

const BOTH: ElicitationSupport = ElicitationSupport { forms: true, urls: true };

#[tokio::test]
async fn ask_1_questions_show_only_visible_text_and_web_addresses() {
    let form = json!({"message": "na\u{200b}me?\u{1b}[2J", "requestedSchema": {
        "type": "object", "properties": {"a": {"type": "string", "title": "\u{202e}x"}}}});
    let (answer, shown) = ask(form.clone(), BOTH).await;
    assert_eq!(answer, json!({"action": "accept", "content": {"a": 1}}));
    let seen = json!({"message": "name?[2J", "requestedSchema": {
        "type": "object", "properties": {"a": {"type": "string", "title": "x"}}}});
    assert_eq!(shown, Some(params(seen)));

    let check = async |value: Value, can_show: ElicitationSupport| {
        assert_eq!(
            ask(value.clone(), can_show).await,
            (json!({"action": "decline"}), None),
            "{value}"
        );
    };
    check(form, ElicitationSupport { forms: false, urls: true }).await;
    let url = |url: &str| json!({"mode": "url", "message": "m", "url": url, "elicitationId": "1"});
    check(url("https://a.example/"), ElicitationSupport { forms: true, urls: false }).await;
    for strange in ["javascript:alert(1)", "file:///etc/passwd", "-x", ""] {
        check(url(strange), BOTH).await;
    }
    assert!(ask(url("https://a.example/"), BOTH).await.1.is_some());
    check(json!({"message": "x".repeat(PARAMS_BYTES)}), BOTH).await;
}

#[tokio::test]
async fn unanswered_questions_are_cancelled() {
    let (questions, mut seen) = mpsc::channel(1);
    let caller = Caller::default().with_questions(questions, elicitation(BOTH));
    let server = ServerName::new("s").expect("a name");
    let human = async { drop(seen.recv().await.expect("a question")) };
    let (answer, ()) = tokio::join!(
        caller.ask(&server, QuestionKind::Elicitation, params(json!({"message": "m"}))),
        human
    );
    assert_eq!(answer, Ok(cancel_result()));
    drop(seen);
    assert_eq!(
        caller.ask(&server, QuestionKind::Elicitation, Map::new()).await,
        decline(QuestionKind::Elicitation)
    );
    assert_eq!(
        Caller::default().ask(&server, QuestionKind::Elicitation, Map::new()).await,
        decline(QuestionKind::Elicitation)
    );
}
