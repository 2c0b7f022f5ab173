//! The parameters of a script: a JSON Schema that its input is checked against before a run.

use codexec_schema::{Checker, Flaw, examine, list_parameters};
use codexec_types::is_hidden;
use serde_json::Value;

const SHOWN_CHARS: usize = 300;

/// THREAT[SCR-5]: whoever saves a script writes its schema. A schema that no check would come to
/// an end with, or that is read from elsewhere, is refused.
pub(crate) fn examine_parameters(schema: &Value) -> Result<(), String> {
    let Value::Object(fields) = schema else {
        return Err("it is not an object like {\"type\": \"object\", \"properties\": {}}".into());
    };
    if fields.get("type").is_some_and(|kind| kind != "object") {
        return Err("its `type` must be \"object\"".to_owned());
    }
    examine(schema).map_err(|why| shown(&why))
}

/// What is wrong with the input, in one sentence for each thing.
pub(crate) fn check(checker: &Checker, schema: &Value, input: &Value) -> Result<(), Vec<String>> {
    match checker.check(schema, input, "input") {
        Ok(()) => Ok(()),
        Err(Flaw::Wrong(wrong)) => {
            let sentences = wrong.iter().map(|sentence| shown(sentence));
            Err(sentences.chain([shown(&list_parameters(schema))]).collect())
        }
        Err(Flaw::TooMuch) => Err(vec![
            "`input` is too much work to check against them; give less of it, or simplify the \
             parameters"
                .to_owned(),
        ]),
    }
}

fn shown(text: &str) -> String {
    let mut shown: String = text.chars().filter(|&c| !is_hidden(c)).take(SHOWN_CHARS).collect();
    if text.chars().count() > SHOWN_CHARS {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;
