//! A user who submits every elicitation form with its default values.

use codexec_gateway::{Caller, ElicitationSupport, Question, QuestionSupport};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

pub(super) fn accepting_caller() -> Caller {
    let (questions, mut incoming) = mpsc::channel::<Question>(1);
    tokio::spawn(async move {
        while let Some(question) = incoming.recv().await {
            let content = default_values(question.params.get("requestedSchema"));
            question.answer(json!({"action": "accept", "content": content}));
        }
    });
    let elicitation = ElicitationSupport { forms: true, urls: false };
    let support = QuestionSupport { elicitation, ..QuestionSupport::default() };
    Caller::default().with_questions(questions, support)
}

fn default_values(schema: Option<&Value>) -> Map<String, Value> {
    let fields = schema.and_then(|schema| schema.get("properties")?.as_object());
    let fields = fields.into_iter().flatten();
    fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone()))).collect()
}
