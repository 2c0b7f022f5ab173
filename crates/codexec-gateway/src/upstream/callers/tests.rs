use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::{ElicitationSupport, Question, QuestionSupport};

fn caller() -> (Caller, mpsc::Receiver<Question>) {
    let (sender, questions) = mpsc::channel(1);
    let elicitation = ElicitationSupport { forms: true, urls: false };
    let can_show = QuestionSupport { elicitation, ..QuestionSupport::default() };
    (Caller::default().with_questions(sender, can_show), questions)
}

fn name() -> ServerName {
    ServerName::new("s").expect("a name")
}

/// Answers all questions with `who`.
fn answer_all(mut questions: mpsc::Receiver<Question>, who: &'static str) {
    tokio::spawn(async move {
        while let Some(question) = questions.recv().await {
            question.answer(json!(who));
        }
    });
}

#[tokio::test]
async fn a_question_goes_to_the_oldest_call_that_still_waits() {
    let callers = Callers::default();
    assert_eq!(
        callers.ask(QuestionKind::Elicitation, Map::new()).await,
        decline(QuestionKind::Elicitation)
    );
    let ((first, asked_first), (second, asked_second)) = (caller(), caller());
    answer_all(asked_first, "first");
    answer_all(asked_second, "second");
    let older = callers.register(&name(), &first);
    let younger = callers.register(&name(), &second);
    assert_eq!(callers.ask(QuestionKind::Elicitation, Map::new()).await, Ok(json!("first")));
    drop(older);
    assert_eq!(callers.ask(QuestionKind::Elicitation, Map::new()).await, Ok(json!("second")));
    drop(younger);
    assert_eq!(
        callers.ask(QuestionKind::Elicitation, Map::new()).await,
        decline(QuestionKind::Elicitation)
    );
}

#[tokio::test]
async fn questions_per_call_are_limited() {
    let callers = Callers::default();
    let (caller, questions) = caller();
    answer_all(questions, "here");
    let _guard = callers.register(&name(), &caller);
    for _ in 0..QUESTIONS {
        let answer = callers.ask(QuestionKind::Elicitation, Map::new()).await;
        assert_eq!(answer, Ok(json!("here")));
    }
    assert_eq!(
        callers.ask(QuestionKind::Elicitation, Map::new()).await,
        cancel(QuestionKind::Elicitation)
    );
}

#[tokio::test]
async fn a_question_is_cancelled_with_its_call() {
    let callers = Callers::default();
    let (caller, mut questions) = caller();
    let guard = callers.register(&name(), &caller);
    let asked = callers.ask(QuestionKind::Elicitation, Map::new());
    let human = async {
        let mut question = questions.recv().await.expect("a question");
        assert!(guard.call.paused.lock().expect("a lock").since.is_some(), "the timeout is paused");
        drop(guard);
        question.wait_abandoned().await;
    };
    let (answer, ()) = tokio::join!(asked, human);
    assert_eq!(answer, cancel(QuestionKind::Elicitation));
}
