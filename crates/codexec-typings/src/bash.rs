//! Writes a tool as a call of the `mcp` command.

use super::{
    TypedTool,
    detail::BUDGET_BYTES,
    model::{Field, SchemaShape},
    names::is_identifier,
    typescript::type_line,
};
use codexec_types::cut_text;

const MAX_FLAGS: usize = 60;

/// `mcp github get_issue --owner <string> [--number <number>]`
pub(super) fn signature(tool: &TypedTool<'_>) -> String {
    let mut text = command(tool);
    for field in flags(tool).unwrap_or_default().iter().take(MAX_FLAGS) {
        let flag_type = flag_type(tool.input, field, 1);
        let flag = if flag_type == "boolean" {
            format!("--{}", field.name)
        } else {
            format!("--{} <{flag_type}>", field.name)
        };
        text.push_str(&if field.is_required { format!(" {flag}") } else { format!(" [{flag}]") });
    }
    if flags(tool).is_none() {
        text.push_str(" --json '{..}'");
    }
    cut_text(&text, BUDGET_BYTES)
}

/// Writes the command with a line for each flag, and the type of the result.
pub(super) fn declaration(tool: &TypedTool<'_>) -> String {
    let mut text = command(tool);
    match flags(tool) {
        Some(fields) => {
            for field in fields.iter().take(MAX_FLAGS) {
                text.push_str(&flag_line(tool.input, field));
            }
            if fields.len() > MAX_FLAGS {
                text.push_str("\n  ..");
            }
        }
        None => text.push_str(&format!(" --json '{}'", type_line(tool.input, &tool.input.root, 4))),
    }
    if let Some(output) = tool.output {
        let observed = if tool.is_observed { " (observed)" } else { "" };
        text.push_str(&format!("\nreturns{observed}: {}", type_line(output, &output.root, 5)));
    }
    cut_text(&text, BUDGET_BYTES)
}

fn flag_line(shape: &SchemaShape, field: &Field) -> String {
    let required = if field.is_required { ", required" } else { "" };
    let comment = field.notes.comment(160, true);
    let comment = if comment.is_empty() { comment } else { format!("; {comment}") };
    format!("\n  --{} <{}>{required}{comment}", field.name, flag_type(shape, field, 4))
}

/// Returns the type of a flag's value; in a signature, a structured type is just `json`.
fn flag_type(shape: &SchemaShape, field: &Field, depth: usize) -> String {
    let text = type_line(shape, &field.r#type, depth + 1);
    let is_structure = text.contains(['{', '[', '&']) || text.contains("Record<");
    let is_list = text.strip_suffix("[]").is_some_and(is_identifier);
    if is_structure && !is_list && depth == 1 { "json".to_owned() } else { text }
}

fn command(tool: &TypedTool<'_>) -> String {
    let word = |name: &str| if is_word(name) { name.to_owned() } else { shell_quote(name) };
    format!("mcp {} {}", word(tool.server), word(tool.name))
}

/// Returns the fields that can be written as flags; `None` if the arguments must be JSON.
fn flags(tool: &TypedTool<'_>) -> Option<Vec<Field>> {
    if !tool.takes_arguments() {
        return Some(Vec::new());
    }
    let fields = tool.input.fields()?;
    let are_flags = fields.iter().all(|field| is_identifier(&field.name.replace('-', "_")));
    (are_flags && !fields.is_empty()).then_some(fields)
}

fn is_word(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c)) && !name.starts_with('-')
}

fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
