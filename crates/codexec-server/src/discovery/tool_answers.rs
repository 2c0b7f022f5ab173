//! Formats tools as `code-executor` does: `{name, description, parameters, outputSchema?}`.

use codexec_gateway::{Gateway, SearchQuery, ToolInfo};
use codexec_types::{Ask, CallError, Json, Language, ToolDetail, ToolFilter, ToolKind};
use serde_json::{Value, json};

pub(super) async fn answer(
    gateway: &Gateway,
    ask: Ask,
    visible: &ToolFilter,
    language: Language,
) -> Result<Json, CallError> {
    match ask {
        Ask::Schema { name } => {
            match gateway.schema_or_note(&name, visible, language.into()).await? {
                Some(tool) => gateway.to_bounded_json(&schema(tool)),
                None => Ok(Json::null()),
            }
        }
        // A search with further options comes from code that knows codexec's own shape.
        Ask::Search {
            query,
            limit,
            server: None,
            kind: ToolKind::Any,
            detail: ToolDetail::Summary,
        } => search(gateway, query, limit, visible, language).await,
        ask => gateway.answer(ask, visible, language).await,
    }
}

/// Returns the best matches, followed by every tool that contains one of the words.
async fn search(
    gateway: &Gateway,
    text: String,
    limit: u32,
    visible: &ToolFilter,
    language: Language,
) -> Result<Json, CallError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    let query = SearchQuery { text, limit, detail: ToolDetail::Full, ..SearchQuery::default() };
    let best = gateway.search(&query, visible).await?;
    let mut found: Vec<Value> = best.tools.into_iter().map(schema).collect();
    if found.len() < limit && !words.is_empty() {
        let others = gateway.answer(Ask::Discover { words }, visible, language).await?;
        let others: Vec<Value> = serde_json::from_str(others.text()).unwrap_or_default();
        for tool in others {
            if found.iter().all(|known| known.get("name") != tool.get("name")) {
                found.push(tool);
            }
        }
        found.truncate(limit);
    }
    gateway.to_bounded_json(&Value::Array(found))
}

/// Formats one tool like `discoverMCPTools`.
fn schema(tool: ToolInfo) -> Value {
    let mut schema = json!({
        "name": format!("mcp__{}__{}", tool.server, tool.tool),
        "server": tool.server,
        "tool": tool.tool,
        "description": tool.description.unwrap_or_default(),
        "parameters": tool.input_schema.unwrap_or_else(|| json!({"type": "object"})),
    });
    if let (Some(output), Some(fields)) = (tool.output_schema, schema.as_object_mut()) {
        fields.insert("outputSchema".to_owned(), output);
    }
    schema
}

/// Returns the number of tools in a result.
pub(super) fn count(result: &Json) -> usize {
    match serde_json::from_str(result.text()) {
        Ok(Value::Array(found)) => found.len(),
        Ok(Value::Null) | Err(_) => 0,
        Ok(_) => 1,
    }
}
