//! A tool as the command `mcp` takes it.

use super::{
    Tool,
    look::BUDGET_BYTES,
    model::{Field, Shape},
    names::is_identifier,
    typescript::type_line,
};
use crate::clean::cut;

const FLAGS: usize = 60;

/// `mcp github get_issue --owner <string> [--number <number>]`
pub(super) fn line(tool: &Tool<'_>) -> String {
    let mut text = command(tool);
    for field in flags(tool).unwrap_or_default().iter().take(FLAGS) {
        let kind = kind(tool.input, field, 1);
        let flag = if kind == "boolean" {
            format!("--{}", field.name)
        } else {
            format!("--{} <{kind}>", field.name)
        };
        text.push_str(&if field.is_required { format!(" {flag}") } else { format!(" [{flag}]") });
    }
    if flags(tool).is_none() {
        text.push_str(" --json '{..}'");
    }
    cut(&text, BUDGET_BYTES)
}

/// The same with a line for each flag, and what it gives.
pub(super) fn declaration(tool: &Tool<'_>) -> String {
    let mut text = command(tool);
    match flags(tool) {
        Some(fields) => {
            for field in fields.iter().take(FLAGS) {
                text.push_str(&flag(tool.input, field));
            }
            if fields.len() > FLAGS {
                text.push_str("\n  ..");
            }
        }
        None => text.push_str(&format!(" --json '{}'", type_line(tool.input, &tool.input.root, 4))),
    }
    if let Some(output) = tool.output {
        let observed = if tool.is_observed { " (observed)" } else { "" };
        text.push_str(&format!("\ngives{observed}: {}", type_line(output, &output.root, 5)));
    }
    cut(&text, BUDGET_BYTES)
}

fn flag(shape: &Shape, field: &Field) -> String {
    let required = if field.is_required { ", required" } else { "" };
    let comment = field.notes.comment(160, true);
    let comment = if comment.is_empty() { comment } else { format!("; {comment}") };
    format!("\n  --{} <{}>{required}{comment}", field.name, kind(shape, field, 4))
}

/// What the flag takes; on one line anything with fields is only said to be JSON.
fn kind(shape: &Shape, field: &Field, depth: usize) -> String {
    let text = type_line(shape, &field.r#type, depth + 1);
    let is_structure = text.contains(['{', '[', '&']) || text.contains("Record<");
    let is_list = text.strip_suffix("[]").is_some_and(is_identifier);
    if is_structure && !is_list && depth == 1 { "json".to_owned() } else { text }
}

fn command(tool: &Tool<'_>) -> String {
    let word = |name: &str| if is_word(name) { name.to_owned() } else { shell_quoted(name) };
    format!("mcp {} {}", word(tool.server), word(tool.name))
}

/// `None` when the arguments are no flags.
fn flags(tool: &Tool<'_>) -> Option<Vec<Field>> {
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

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
