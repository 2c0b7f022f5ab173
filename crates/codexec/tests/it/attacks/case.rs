//! A case as it stands in `cases/attacks.jsonl`. The fields are those of the shared attack set,
//! so that cases can be copied either way.

use std::time::Duration;

use serde_json::Value;

const CASES: &str = include_str!("../../cases/attacks.jsonl");

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) area: String,
    pub(crate) language: String,
    /// Code, or an object that says what to do.
    pub(crate) request: Value,
    pub(crate) opts: Value,
    /// The feature without which it means nothing.
    pub(crate) applies_if: Option<String>,
    pub(crate) oracle: Oracle,
    /// What the response to an HTTP request must have, if it is one.
    pub(crate) http_status: Vec<u16>,
}

/// What must hold of everything that was said, of how it ended, and of the host.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    pub(crate) forbid: Vec<String>,
    /// At least one of them, if there are any.
    pub(crate) require: Vec<String>,
    pub(crate) status: Vec<String>,
    pub(crate) max_wall: Duration,
    pub(crate) host: Vec<String>,
    /// What the program must have ended with.
    pub(crate) exit_code: Option<i64>,
    /// What the answers to single steps must and must not hold, by the step's number.
    pub(crate) step_require: Value,
    pub(crate) step_forbid: Value,
    /// What must hold of all answers together.
    pub(crate) stat: Option<String>,
}

pub(crate) fn all() -> Vec<Case> {
    CASES.lines().map(|line| case(&serde_json::from_str(line).expect("a line of JSON"))).collect()
}

fn case(line: &Value) -> Case {
    let oracle = &line["oracle"];
    let wall = oracle["max_wall_ms"].as_u64().expect("max_wall_ms");
    Case {
        id: text(&line["id"]),
        area: text(&line["area"]),
        language: text(&line["language"]),
        request: line["code_or_request"].clone(),
        opts: line["opts"].clone(),
        applies_if: line["applies_if"].as_str().map(ToOwned::to_owned),
        http_status: serde_json::from_value(oracle["http_status"].clone()).unwrap_or_default(),
        oracle: Oracle {
            forbid: texts(&oracle["forbid"]),
            require: texts(&oracle["require"]),
            status: texts(&oracle["status"]),
            max_wall: Duration::from_millis(wall),
            host: texts(&oracle["host"]),
            exit_code: oracle["exit_code"].as_i64(),
            step_require: oracle["step_require"].clone(),
            step_forbid: oracle["step_forbid"].clone(),
            stat: oracle["stat"].as_str().map(ToOwned::to_owned),
        },
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

pub(super) fn texts(value: &Value) -> Vec<String> {
    value.as_array().map(|items| items.iter().map(text).collect()).unwrap_or_default()
}

/// `@@NAME@@` is what `names` has for it, `@@REP:3:ab@@` is `ababab`.
pub(crate) fn fill(text: &str, names: &[(&str, String)]) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("@@") {
        let (inner, behind) = after.split_once("@@").expect("both ends of a placeholder");
        filled.push_str(before);
        filled.push_str(&placeholder(inner, names));
        rest = behind;
    }
    filled + rest
}

fn placeholder(inner: &str, names: &[(&str, String)]) -> String {
    if let Some((count, unit)) = inner.strip_prefix("REP:").and_then(|rep| rep.split_once(':')) {
        return unit.repeat(count.parse().expect("a number"));
    }
    let known = names.iter().find(|(name, _)| *name == inner);
    known.unwrap_or_else(|| panic!("nothing is known for @@{inner}@@")).1.clone()
}

/// [`fill`] in every text within, keys included.
pub(super) fn fill_all(value: &Value, names: &[(&str, String)]) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, names)),
        Value::Array(items) => {
            let filled = items.iter().flat_map(|item| match repeated(item) {
                Some(items) => items,
                None => vec![fill_all(item, names)],
            });
            filled.collect()
        }
        Value::Object(fields) => {
            let fill_field =
                |(key, value): (&String, &Value)| (fill(key, names), fill_all(value, names));
            Value::Object(fields.iter().map(fill_field).collect())
        }
        other => other.clone(),
    }
}

/// `@@REPLIST:3:a@@` in a list is three entries.
fn repeated(item: &Value) -> Option<Vec<Value>> {
    let inner = item.as_str()?.strip_prefix("@@REPLIST:")?.strip_suffix("@@")?;
    let (count, unit) = inner.split_once(':').expect("a count and a text");
    Some(vec![Value::String(unit.to_owned()); count.parse().expect("a number")])
}

/// What is looked for is looked for as it stands: only answers over HTTP are compared with patterns.
#[test]
fn no_case_wants_more_than_literals() {
    for case in all().into_iter().filter(|case| case.language != "http") {
        for text in case.oracle.forbid.iter().chain(&case.oracle.require) {
            assert!(!text.contains(['*', '+', '?', '[', '(', '|', '^', '$', '\\']), "{}", case.id);
        }
    }
}
