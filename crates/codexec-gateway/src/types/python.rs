//! A tool in Python: a signature on one line, or a stub with classes.

mod classes;
mod hint;

use codexec_types::alias;
use serde_json::Value;

use super::{
    Tool,
    look::{self, Look},
    model::Field,
    names::{docstring, is_python_name, quoted},
};
use classes::Classes;
use hint::{Hints, Inline};

const SHORTENED: &str = "# shortened: the schemas have the rest";
const LINE_BYTES: usize = 100;

/// `get_issue(*, owner: str, number: int = 1) -> Any`
pub(super) fn line(tool: &Tool<'_>) -> String {
    let name = function_name(tool.name);
    let write = |look: Look| {
        let mut hints = Hints::new(look, Inline::default());
        let parameters = parameters(tool, &mut hints);
        let parameters = match parameters {
            Parameters::None => String::new(),
            Parameters::Named(list) => {
                format!(
                    "*, {}",
                    list.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(", ")
                )
            }
            Parameters::Dict(hint) => hint,
        };
        let output = output(tool, &mut hints);
        let observed = if tool.is_observed { "  # observed" } else { "" };
        format!("{name}({parameters}) -> {output}{observed}")
    };
    look::line(write).unwrap_or_else(|| format!("{name}(args: dict = {{}}) -> Any"))
}

/// `async def get_issue(..) -> Result:` with comments, and a class for each type of object.
pub(super) fn declaration(tool: &Tool<'_>) -> String {
    let head = format!("# await {}(..)\n", path(tool));
    let write = |look: Look| {
        let mut hints = Hints::new(look, Classes::new(tool.names.clone()));
        let parameters = parameters(tool, &mut hints);
        let output = output(tool, &mut hints);
        let is_cut =
            hints.is_cut || tool.input.is_cut || tool.output.is_some_and(|shape| shape.is_cut);
        let function = function(tool, &parameters, &output, look);
        (format!("{head}{}{function}", hints.objects.text()), is_cut)
    };
    let nothing = || {
        let name = function_name(tool.name);
        format!("{head}async def {name}(args: dict = ..., /) -> Any: ...\n{SHORTENED}")
    };
    look::declaration(write, SHORTENED).unwrap_or_else(nothing)
}

/// What `(` and `)` stand around.
enum Parameters {
    None,
    Named(Vec<Parameter>),
    /// Where a name is none in Python, all of them go into one dict.
    Dict(String),
}

struct Parameter {
    text: String,
    comment: String,
}

fn parameters<O: hint::Objects>(tool: &Tool<'_>, hints: &mut Hints<O>) -> Parameters {
    if !tool.takes_arguments() {
        return Parameters::None;
    }
    let fields = tool.input.fields().filter(|fields| !fields.is_empty());
    match fields {
        Some(fields) if fields.iter().all(|field| is_python_name(&field.name)) => {
            let shown = fields.get(..hints.look.fields).unwrap_or(&fields);
            let mut list: Vec<Parameter> =
                shown.iter().map(|field| parameter(tool, field, hints)).collect();
            if shown.len() < fields.len() {
                hints.is_cut = true;
                list.push(Parameter { text: "**more".to_owned(), comment: String::new() });
            }
            Parameters::Named(list)
        }
        Some(_) | None => {
            let hint = hints.of(tool.input, &tool.input.root, "Args");
            let absent = if tool.needs_arguments() { "" } else { " = {}" };
            Parameters::Dict(format!("args: {hint}{absent}, /"))
        }
    }
}

fn parameter<O: hint::Objects>(tool: &Tool<'_>, field: &Field, hints: &mut Hints<O>) -> Parameter {
    let hint = hints.of(tool.input, &field.r#type, &field.name);
    let default = field.notes.default.as_ref().and_then(scalar);
    let absent = match (field.is_required, &default) {
        (true, _) => String::new(),
        (false, Some(default)) => format!(" = {default}"),
        (false, None) => " = ...".to_owned(),
    };
    let is_told = default.is_none() || field.is_required;
    let comment = field.notes.comment(hints.look.note_bytes, is_told);
    Parameter { text: format!("{}: {hint}{absent}", field.name), comment }
}

fn output<O: hint::Objects>(tool: &Tool<'_>, hints: &mut Hints<O>) -> String {
    match tool.output {
        Some(output) => hints.of(output, &output.root, "Result"),
        None => "Any".to_owned(),
    }
}

fn function(tool: &Tool<'_>, parameters: &Parameters, output: &str, look: Look) -> String {
    let name = function_name(tool.name);
    let observed = if tool.is_observed { "  # observed" } else { "" };
    let mut text = match parameters {
        Parameters::None => format!("async def {name}() -> {output}:{observed}"),
        Parameters::Dict(args) => format!("async def {name}({args}) -> {output}:{observed}"),
        Parameters::Named(list) => {
            let texts: Vec<&str> = list.iter().map(|one| one.text.as_str()).collect();
            let line = format!("async def {name}(*, {}) -> {output}:{observed}", texts.join(", "));
            let has_comments = list.iter().any(|one| !one.comment.is_empty());
            if look.note_bytes == 0 || (!has_comments && line.len() <= LINE_BYTES) {
                line
            } else {
                let lines: String = list.iter().map(Parameter::line).collect();
                format!("async def {name}(\n    *,\n{lines}) -> {output}:{observed}")
            }
        }
    };
    match docstring(tool.summary) {
        summary if summary.is_empty() => text.push_str(" ..."),
        summary => text.push_str(&format!("\n    \"\"\"{summary}\"\"\"")),
    }
    // Nothing stands behind a comment.
    if tool.is_observed && tool.summary.is_empty() {
        text = text.replace(":  # observed ...", ": ...  # observed");
    }
    text
}

impl Parameter {
    fn line(&self) -> String {
        match self.comment.as_str() {
            "" => format!("    {},\n", self.text),
            comment => format!("    {},  # {comment}\n", self.text),
        }
    }
}

/// How a program writes it.
pub(super) fn path(tool: &Tool<'_>) -> String {
    let server = alias(tool.server);
    let server = if is_python_name(&server) {
        format!("tools.{server}")
    } else {
        format!("tools[{}]", quoted(tool.server))
    };
    let name = alias(tool.name);
    // A name that begins with `_` is none of a tool's.
    match is_python_name(&name) && !name.starts_with("__") {
        true => format!("{server}.{name}"),
        false => format!("{server}[{}]", quoted(tool.name)),
    }
}

fn function_name(name: &str) -> String {
    let name = alias(name);
    if is_python_name(&name) { name } else { format!("_{name}") }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Bool(true) => Some("True".to_owned()),
        Value::Bool(false) => Some("False".to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(quoted(text)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
