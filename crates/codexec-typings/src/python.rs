//! Writes a tool in Python: as a signature, or as a stub with classes.

mod classes;
mod hint;

use codexec_types::to_identifier;
use serde_json::Value;

use super::{
    TypedTool,
    detail::{self, DetailLevel},
    model::Field,
    names::{escape_docstring, is_python_name, quote},
};
use classes::ClassObjects;
use hint::{HintWriter, InlineObjects};

const SHORTENED: &str = "# shortened: the schemas have the rest";
const LINE_BYTES: usize = 100;

/// `get_issue(*, owner: str, number: int = 1) -> Any`
pub(super) fn signature(tool: &TypedTool<'_>) -> String {
    let name = function_name(tool.name);
    let write = |level: DetailLevel| {
        let mut hints = HintWriter::new(level, InlineObjects::default());
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
    detail::fit_signature(write).unwrap_or_else(|| format!("{name}(args: dict = {{}}) -> Any"))
}

/// `async def get_issue(..) -> Result:` with comments, and a class for each type of object.
pub(super) fn declaration(tool: &TypedTool<'_>) -> String {
    let head = format!("# await {}(..)\n", path(tool));
    let write = |level: DetailLevel| {
        let mut hints = HintWriter::new(level, ClassObjects::new(tool.names.clone()));
        let parameters = parameters(tool, &mut hints);
        let output = output(tool, &mut hints);
        let is_cut =
            hints.is_cut || tool.input.is_cut || tool.output.is_some_and(|shape| shape.is_cut);
        let function = function(tool, &parameters, &output, level);
        (format!("{head}{}{function}", hints.objects.text()), is_cut)
    };
    let minimal = || {
        let name = function_name(tool.name);
        format!("{head}async def {name}(args: dict = ..., /) -> Any: ...\n{SHORTENED}")
    };
    detail::fit_declaration(write, SHORTENED).unwrap_or_else(minimal)
}

/// The parameters of a function.
enum Parameters {
    None,
    Named(Vec<Parameter>),
    /// One dict for all arguments, if a name is not valid in Python.
    Dict(String),
}

struct Parameter {
    text: String,
    comment: String,
}

fn parameters<O: hint::ObjectStyle>(tool: &TypedTool<'_>, hints: &mut HintWriter<O>) -> Parameters {
    if !tool.takes_arguments() {
        return Parameters::None;
    }
    let fields = tool.input.fields().filter(|fields| !fields.is_empty());
    match fields {
        Some(fields) if fields.iter().all(|field| is_python_name(&field.name)) => {
            let shown = fields.get(..hints.level.fields).unwrap_or(&fields);
            let mut list: Vec<Parameter> =
                shown.iter().map(|field| parameter(tool, field, hints)).collect();
            if shown.len() < fields.len() {
                hints.is_cut = true;
                list.push(Parameter { text: "**more".to_owned(), comment: String::new() });
            }
            Parameters::Named(list)
        }
        Some(_) | None => {
            let hint = hints.write(tool.input, &tool.input.root, "Args");
            let absent = if tool.needs_arguments() { "" } else { " = {}" };
            Parameters::Dict(format!("args: {hint}{absent}, /"))
        }
    }
}

fn parameter<O: hint::ObjectStyle>(
    tool: &TypedTool<'_>,
    field: &Field,
    hints: &mut HintWriter<O>,
) -> Parameter {
    let hint = hints.write(tool.input, &field.r#type, &field.name);
    let default = field.notes.default.as_ref().and_then(scalar);
    let absent = match (field.is_required, &default) {
        (true, _) => String::new(),
        (false, Some(default)) => format!(" = {default}"),
        (false, None) => " = ...".to_owned(),
    };
    let with_default = default.is_none() || field.is_required;
    let comment = field.notes.comment(hints.level.note_bytes, with_default);
    Parameter { text: format!("{}: {hint}{absent}", field.name), comment }
}

fn output<O: hint::ObjectStyle>(tool: &TypedTool<'_>, hints: &mut HintWriter<O>) -> String {
    match tool.output {
        Some(output) => hints.write(output, &output.root, "Result"),
        None => "Any".to_owned(),
    }
}

fn function(
    tool: &TypedTool<'_>,
    parameters: &Parameters,
    output: &str,
    level: DetailLevel,
) -> String {
    let name = function_name(tool.name);
    let observed = if tool.is_observed { "  # observed" } else { "" };
    let mut text = match parameters {
        Parameters::None => format!("async def {name}() -> {output}:{observed}"),
        Parameters::Dict(args) => format!("async def {name}({args}) -> {output}:{observed}"),
        Parameters::Named(list) => {
            let texts: Vec<&str> = list.iter().map(|one| one.text.as_str()).collect();
            let line = format!("async def {name}(*, {}) -> {output}:{observed}", texts.join(", "));
            let has_comments = list.iter().any(|one| !one.comment.is_empty());
            if level.note_bytes == 0 || (!has_comments && line.len() <= LINE_BYTES) {
                line
            } else {
                let lines: String = list.iter().map(Parameter::line).collect();
                format!("async def {name}(\n    *,\n{lines}) -> {output}:{observed}")
            }
        }
    };
    match escape_docstring(tool.summary) {
        summary if summary.is_empty() => text.push_str(" ..."),
        summary => text.push_str(&format!("\n    \"\"\"{summary}\"\"\"")),
    }
    // A comment must be the last thing on its line.
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

/// Returns the expression that names the tool, such as `tools.server.tool`.
fn path(tool: &TypedTool<'_>) -> String {
    let server = to_identifier(tool.server);
    let server = if is_python_name(&server) {
        format!("tools.{server}")
    } else {
        format!("tools[{}]", quote(tool.server))
    };
    let name = to_identifier(tool.name);
    // Attributes that begin with `__` are not tools.
    match is_python_name(&name) && !name.starts_with("__") {
        true => format!("{server}.{name}"),
        false => format!("{server}[{}]", quote(tool.name)),
    }
}

fn function_name(name: &str) -> String {
    let name = to_identifier(name);
    if is_python_name(&name) { name } else { format!("_{name}") }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Bool(true) => Some("True".to_owned()),
        Value::Bool(false) => Some("False".to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(quote(text)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
