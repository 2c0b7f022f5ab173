//! Query strings, as the arguments of own functions.

use codexec_functions::{Argument, ArgumentType};
use serde_json::{Map, Value};

use super::{ApiError, percent};

/// Maximum number of parameters of a query.
const MAX_PARAMETERS: usize = 100;

/// Parses a query. Values have the types of the arguments; a parameter may be repeated only if its
/// argument is a list. Whoever reads the result reports unknown names.
pub(super) fn parse(
    query: Option<&str>,
    arguments: &[Argument],
) -> Result<Map<String, Value>, ApiError> {
    let mut values = Map::new();
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    for (count, pair) in pairs.enumerate() {
        if count == MAX_PARAMETERS {
            let why = format!("the query has more than {MAX_PARAMETERS} parameters");
            return Err(ApiError::invalid(why));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| {
            let decoded = percent::decode(&text.replace('+', " "));
            decoded.ok_or_else(|| ApiError::invalid("the query is malformed: write %XX in UTF-8"))
        };
        let (name, text) = (decode(name)?, decode(value)?);
        let kind = arguments.iter().find(|one| one.name == name).map(|one| one.kind);
        match (kind, values.get_mut(&name)) {
            (Some(ArgumentType::Texts), Some(Value::Array(list))) => list.push(text.into()),
            (Some(ArgumentType::Texts), _) => {
                values.insert(name, Value::Array(vec![text.into()]));
            }
            (_, Some(_)) => {
                let name: String = name.chars().take(60).collect();
                return Err(ApiError::invalid(format!("{name}: it is given twice")));
            }
            (kind, None) => {
                values.insert(name, typed(kind, text));
            }
        }
    }
    Ok(values)
}

/// Returns the value of this type, or the text itself, which its reader refuses.
fn typed(kind: Option<ArgumentType>, text: String) -> Value {
    let is_json = matches!(kind, Some(ArgumentType::Integer | ArgumentType::Boolean));
    match is_json.then(|| serde_json::from_str(&text)) {
        Some(Ok(value @ (Value::Number(_) | Value::Bool(_)))) => value,
        _ => Value::String(text),
    }
}
