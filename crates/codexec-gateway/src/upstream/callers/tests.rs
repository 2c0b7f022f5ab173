use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::{CanShow, Question};

fn caller() -> (Caller, mpsc::Receiver<Question>) {
    let (sender, questions) = mpsc::channel(1);
    let can_show = CanShow { forms: true, urls: false };
    (Caller::default().asked_by(sender, can_show), questions)
}

fn name() -> ServerName {
    ServerName::new("s").expect("a name")
}

/// Answers all questions with `who`.
fn answering(mut questions: mpsc::Receiver<Question>, who: &'static str) {
    tokio::spawn(async move {
        while let Some(question) = questions.recv().await {
            question.answer(json!(who));
        }
    });
}

#[tokio::test]
async fn a_question_goes_to_the_oldest_call_that_still_waits() {
    let callers = Callers::default();
    assert_eq!(callers.ask(Map::new()).await, declined());
    let ((first, asked_first), (second, asked_second)) = (caller(), caller());
    answering(asked_first, "first");
    answering(asked_second, "second");
    let older = callers.enter(&name(), &first);
    let younger = callers.enter(&name(), &second);
    assert_eq!(callers.ask(Map::new()).await, json!("first"));
    drop(older);
    assert_eq!(callers.ask(Map::new()).await, json!("second"));
    drop(younger);
    assert_eq!(callers.ask(Map::new()).await, declined());
}

#[tokio::test]
async fn a_call_asks_so_often_and_no_more() {
    let callers = Callers::default();
    let (caller, questions) = caller();
    answering(questions, "here");
    let _waiting = callers.enter(&name(), &caller);
    for _ in 0..QUESTIONS {
        assert_eq!(callers.ask(Map::new()).await, json!("here"));
    }
    assert_eq!(callers.ask(Map::new()).await, cancelled());
}

#[tokio::test]
async fn a_call_that_ends_takes_its_question_back() {
    let callers = Callers::default();
    let (caller, mut questions) = caller();
    let waiting = callers.enter(&name(), &caller);
    let asked = callers.ask(Map::new());
    let human = async {
        let mut question = questions.recv().await.expect("a question");
        assert!(waiting.call.still.lock().expect("a lock").since.is_some(), "the clock stands");
        drop(waiting);
        question.abandoned().await;
    };
    let (answer, ()) = tokio::join!(asked, human);
    assert_eq!(answer, cancelled());
}
