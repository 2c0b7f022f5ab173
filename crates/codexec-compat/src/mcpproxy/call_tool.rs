//! Calls of one upstream tool by its joined name.

use codexec_server::mcp::{CallOutcome, PendingCall, ToolRequest, error_outcome, tool_result};
use codexec_server::{FieldError, Fields, ToolReply};
use codexec_types::CallError;
use serde_json::{Map, Value};

/// The kind of operation that a call declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Destructive,
}

const OPERATIONS: [(&str, Operation); 3] = [
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("destructive", Operation::Destructive),
];

/// True for `call_tool`, and for the variants of newer MCPProxy versions, one per kind of
/// operation.
pub(super) fn is_tool(name: &str) -> bool {
    name == "call_tool" || operation_of(name).is_some()
}

pub(super) fn begin(
    called_as: &str,
    arguments: Map<String, Value>,
    request: &ToolRequest<'_>,
) -> PendingCall {
    match read(arguments, operation_of(called_as)) {
        Ok((name, args)) => request.start_upstream(name, args, to_outcome),
        Err(problem) => {
            let reply = ToolReply::error(format!("INVALID_ARGS: {problem}"));
            request.start(|_, _| async { CallOutcome::own(tool_result(reply)) })
        }
    }
}

fn operation_of(name: &str) -> Option<Operation> {
    let kind = name.strip_prefix("call_tool_")?;
    OPERATIONS.into_iter().find(|(word, _)| *word == kind).map(|(_, operation)| operation)
}

/// Reads the tool's name and its arguments.
fn read(
    arguments: Map<String, Value>,
    called_as: Option<Operation>,
) -> Result<(String, Map<String, Value>), String> {
    let wrong = |error: FieldError| error.to_string();
    let mut fields = Fields::new(arguments);
    let name = fields.required_text("name").map_err(wrong)?;
    let args = fields.take("args").filter(|args| !args.is_null());
    let text = fields.text("args_json").map_err(wrong)?.filter(|text| !text.is_empty());
    let intent = fields.take("intent").filter(|intent| !intent.is_null());
    fields.finish().map_err(wrong)?;
    let said = intent.map(read_intent).transpose()?.flatten();
    if let (Some(said), Some(called_as)) = (said, called_as)
        && said != called_as
    {
        return Err("intent.operation_type: it is not what this tool does; leave it out".to_owned());
    }
    let must = "it must be an object of the tool's arguments";
    let args = match (args, text) {
        (Some(_), Some(_)) => return Err("args, args_json: both are given; give one".to_owned()),
        (Some(args), None) => args,
        (None, Some(text)) => {
            serde_json::from_str(&text).map_err(|error| format!("args_json: {error}; {must}"))?
        }
        (None, None) => Value::Object(Map::new()),
    };
    match args {
        Value::Object(args) => Ok((name, args)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(format!("args: {must}"))
        }
    }
}

/// Reads the intent only to report mistakes. The policy decides what may be called.
fn read_intent(intent: Value) -> Result<Option<Operation>, String> {
    let Value::Object(intent) = intent else {
        return Err("intent: it must be an object".to_owned());
    };
    let wrong = |error: FieldError| format!("intent.{error}");
    let mut fields = Fields::new(intent);
    let operation = fields.choice("operation_type", &OPERATIONS).map_err(wrong)?;
    fields.text("data_sensitivity").map_err(wrong)?;
    fields.text("reason").map_err(wrong)?;
    fields.finish().map_err(wrong)?;
    Ok(operation)
}

fn to_outcome(_: &str, called: Result<Value, CallError>) -> CallOutcome {
    match called {
        Ok(result) => CallOutcome::Upstream(result),
        Err(error) => error_outcome(&error),
    }
}

#[cfg(test)]
mod tests;
