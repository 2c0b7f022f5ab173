use codexec_gateway::ToolInfo;

/// One tool as an agent or a person reads it: as much as was asked for, on as few lines.
pub fn tool_text(tool: &ToolInfo) -> String {
    let mut text = tool.signature.clone().unwrap_or_else(|| tool.name.clone());
    if let Some(description) = &tool.description {
        text.push_str(" // ");
        text.push_str(&description.replace('\n', " "));
    }
    if let Some(schema) = &tool.input_schema {
        text.push_str("\n  input ");
        text.push_str(&schema.to_string());
    }
    if let Some(schema) = &tool.output_schema {
        text.push_str("\n  output ");
        text.push_str(&schema.to_string());
    }
    text
}
