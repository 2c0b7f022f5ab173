use codexec_gateway::ToolInfo;

/// Formats a tool for an agent or a person, with the requested details, in few lines.
pub fn render_tool(tool: &ToolInfo) -> String {
    let mut text = match &tool.signature {
        // A name that is not an identifier is quoted.
        Some(signature) if signature.starts_with('"') => {
            let quoted = signature.split_inclusive('"').take(2).collect::<String>();
            let rest = signature.get(quoted.len()..).unwrap_or_default();
            format!("{}[{quoted}]{rest}", tool.server)
        }
        Some(signature) => format!("{}.{signature}", tool.server),
        None => tool.name.clone(),
    };
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
