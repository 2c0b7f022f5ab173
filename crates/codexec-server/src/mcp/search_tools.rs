use codexec_gateway::{SearchQuery, SearchReply, describe_missing};
use codexec_types::{ToolDetail, ToolKind};
use serde_json::{Map, Value};

use crate::fields::{FieldError, Fields};
use crate::{App, Connection, TextBudget, ToolReply};

const MAX_QUERY_CHARS: usize = 1_000;
/// Room for the notes after the tools.
const NOTES_CHARS: usize = 2_000;

pub(super) async fn call(
    app: &App,
    connection: &Connection,
    arguments: Map<String, Value>,
) -> ToolReply {
    let query = match read_query(arguments) {
        Ok(query) => query,
        Err(error) => return ToolReply::error(format!("INVALID_ARGS: {error}")),
    };
    match app.gateway.search(&query, &connection.policy().tools).await {
        Ok(found) => {
            let mut text = format_result(&found, TextBudget::DEFAULT);
            if let Some(note) = app.live_settings.waiting_note()
                && connection.sees_settings()
            {
                text.push_str(&format!("\n[{note}]"));
            }
            ToolReply::success(text)
        }
        Err(error) => ToolReply::error(format!("INVALID_ARGS: {}", error.message)),
    }
}

fn read_query(arguments: Map<String, Value>) -> Result<SearchQuery, FieldError> {
    let mut fields = Fields::new(arguments);
    let query = fields.required_text("query")?;
    let limit = fields.number("limit", 1..=100)?.unwrap_or(10);
    let detail = fields.choice("detail", &ToolDetail::ALL)?.unwrap_or_default();
    let kind = fields.choice("kind", &ToolKind::NARROW)?.unwrap_or_default();
    let server = fields.text("server")?;
    fields.finish()?;
    Ok(SearchQuery {
        text: query.chars().take(MAX_QUERY_CHARS).collect(),
        limit: usize::try_from(limit).unwrap_or(10),
        detail,
        server,
        kind,
    })
}

/// Formats one tool per line. Entries are left out rather than cut, and their number is given.
fn format_result(found: &SearchReply, budget: TextBudget) -> String {
    let mut text = String::new();
    let mut shown = 0;
    for tool in &found.tools {
        let entry = crate::render_tool(tool);
        if text.chars().count() + entry.chars().count() > budget.chars - NOTES_CHARS {
            break;
        }
        text.push_str(&entry);
        text.push('\n');
        shown += 1;
    }
    if found.tools.is_empty() {
        text.push_str("no tool matches; try other words\n");
    }
    let left_out = found.tools.len() - shown;
    if left_out > 0 {
        text.push_str(&format!("[{left_out} more left out; ask for less detail or fewer]\n"));
    }
    for note in describe_missing(&found.missing) {
        text.push_str(&format!("[{note}]\n"));
    }
    text.truncate(text.trim_end().len());
    text
}
