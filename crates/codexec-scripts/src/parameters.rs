//! The parameters of a script: a JSON Schema against which its input is checked before a run.

use codexec_schema::{CheckError, Checker, list_parameters, validate_schema};
use codexec_types::is_hidden;
use serde_json::Value;

const SHOWN_CHARS: usize = 300;

/// THREAT[SCR-5]: the schema is as untrusted as the code that saves the script. A schema that would
/// take too long to check, or that refers to elsewhere, is refused.
pub(crate) fn validate_parameters(schema: &Value) -> Result<(), String> {
    let Value::Object(fields) = schema else {
        return Err("it is not an object like {\"type\": \"object\", \"properties\": {}}".into());
    };
    if fields.get("type").is_some_and(|kind| kind != "object") {
        return Err("its `type` must be \"object\"".to_owned());
    }
    validate_schema(schema).map_err(|problem| shorten(&problem))
}

/// Checks the input. Returns a sentence for each problem.
pub(crate) fn check(checker: &Checker, schema: &Value, input: &Value) -> Result<(), Vec<String>> {
    match checker.check(schema, input, "input") {
        Ok(()) => Ok(()),
        Err(CheckError::Wrong(problems)) => {
            let sentences = problems.iter().map(|sentence| shorten(sentence));
            Err(sentences.chain([shorten(&list_parameters(schema))]).collect())
        }
        Err(CheckError::TooMuch) => Err(vec![
            "`input` is too much work to check against them; give less of it, or simplify the \
             parameters"
                .to_owned(),
        ]),
    }
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().filter(|&c| !is_hidden(c)).take(SHOWN_CHARS).collect();
    if text.chars().count() > SHOWN_CHARS {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests;
