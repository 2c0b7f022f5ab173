use codexec_functions::{OwnFunction, ToolEffect, ToolSpec};
use rmcp::model::{Tool, ToolAnnotations};

use super::super::tool::tool;

/// Returns the tools in the order of the table.
pub(in crate::mcp) fn tools() -> Vec<Tool> {
    let specs = OwnFunction::ALL.iter().map(|function| function.spec());
    specs
        .filter_map(|spec| {
            let annotations = annotations(spec.tool?);
            Some(tool(spec.name, spec.description, spec.input_schema(), annotations))
        })
        .collect()
}

fn annotations(ToolSpec { title, effect }: ToolSpec) -> ToolAnnotations {
    let annotations = ToolAnnotations::with_title(title);
    match effect {
        ToolEffect::Reads => annotations.read_only(true).open_world(false),
        ToolEffect::Adds => annotations.destructive(false).open_world(false),
        ToolEffect::Removes => annotations.destructive(true).idempotent(true).open_world(false),
        ToolEffect::Runs => annotations.destructive(true).open_world(true),
    }
}

#[cfg(test)]
mod tests;
