use codexec_gateway::{SearchQuery, SearchReply, ToolInfo, describe_missing};
use codexec_server::{App, Client, FieldError, Fields, TextBudget, ToolReply};
use codexec_types::{ToolDetail, ToolKind};
use serde_json::{Map, Value, json};

const MAX_QUERY_CHARS: usize = 1_000;
/// Maximum length of the result without the tools.
const OVERHEAD_CHARS: usize = 2_000;
/// `full` and `compact` are MCPProxy's words; the others are codexec's own.
const DETAILS: [(&str, ToolDetail); 4] = [
    ("full", ToolDetail::Full),
    ("compact", ToolDetail::Summary),
    ("summary", ToolDetail::Summary),
    ("names", ToolDetail::Names),
];

pub(super) async fn call(
    app: &App,
    client: &Client,
    arguments: Map<String, Value>,
    usual: usize,
) -> ToolReply {
    let query = match read_query(arguments, usual) {
        Ok(query) => query,
        Err(error) => return ToolReply::error(format!("INVALID_ARGS: {error}")),
    };
    match app.gateway.search(&query, &client.connection.policy().tools).await {
        Ok(found) => {
            let mut notes = describe_missing(&found.missing);
            notes.extend(app.live_settings.waiting_note());
            ToolReply::success(format_result(&query, &found, &notes, client.connection.budget()))
        }
        Err(error) => ToolReply::error(format!("INVALID_ARGS: {}", error.message)),
    }
}

fn read_query(arguments: Map<String, Value>, usual: usize) -> Result<SearchQuery, FieldError> {
    let mut fields = Fields::new(arguments);
    let text = fields.required_text("query")?;
    let limit = fields.number("limit", 1..=100)?;
    let detail = fields.choice("detail", &DETAILS)?.unwrap_or(ToolDetail::Full);
    let server = fields.text("server")?;
    let is_read_only = fields.boolean("read_only_only")?.unwrap_or(false);
    let is_safe = fields.boolean("exclude_destructive")?.unwrap_or(false);
    fields.finish()?;
    let kind = match (is_read_only, is_safe) {
        (true, _) => ToolKind::ReadOnly,
        (false, true) => ToolKind::Safe,
        (false, false) => ToolKind::Any,
    };
    Ok(SearchQuery {
        text: text.chars().take(MAX_QUERY_CHARS).collect(),
        limit: limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usual),
        detail,
        server,
        kind,
    })
}

/// Formats the result. Tools are left out rather than cut, and their number is given.
fn format_result(
    query: &SearchQuery,
    found: &SearchReply,
    notes: &[String],
    budget: TextBudget,
) -> String {
    let mut left = budget.chars.saturating_sub(OVERHEAD_CHARS);
    let fits = |tool: &Value| {
        let rest = left.checked_sub(tool.to_string().chars().count());
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let tools: Vec<Value> = found.tools.iter().map(format_tool).take_while(fits).collect();
    let left_out = found.tools.len() - tools.len();
    let mut reply = json!({"query": query.text, "total": tools.len(), "tools": tools});
    let Some(fields) = reply.as_object_mut() else { return reply.to_string() };
    if left_out > 0 {
        let hint = format!("{left_out} more; ask for less detail or fewer");
        fields.insert("left_out".to_owned(), hint.into());
    }
    if !notes.is_empty() {
        fields.insert("notes".to_owned(), json!(notes));
    }
    reply.to_string()
}

fn format_tool(info: &ToolInfo) -> Value {
    let mut tool = Map::new();
    tool.insert("name".to_owned(), format!("{}:{}", info.server, info.tool).into());
    tool.insert("server".to_owned(), info.server.as_str().into());
    let schema = info.input_schema.clone();
    let signature = if schema.is_none() { info.signature.clone() } else { None };
    let more = [
        ("description", info.description.clone().map(Value::String)),
        ("signature", signature.map(Value::String)),
        ("inputSchema", schema),
    ];
    let more = more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    tool.extend(more);
    Value::Object(tool)
}
