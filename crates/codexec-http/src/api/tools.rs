//! The tools of the user's MCP servers.

use codexec_gateway::{SearchQuery, SearchReply, ToolInfo, describe_missing};
use codexec_server::Fields;
use codexec_types::{Ask, Json, Language, ToolDetail, ToolKind};
use codexec_typings::TypingsLanguage;
use serde_json::{Value, json};

use super::servers::known_name;
use super::{Answer, ApiError, ApiRequest, ok};

const DEFAULT_FOUND: u64 = 20;
const MAX_FOUND: u64 = 100;
const MAX_LISTED: usize = 1_000;
const MAX_QUERY_CHARS: usize = 1_000;

pub(super) async fn list(mut request: ApiRequest<'_>) -> Answer {
    let mut fields = Fields::new(std::mem::take(&mut request.query));
    let server = fields.text("server")?;
    fields.finish()?;
    if let Some(server) = &server {
        known_name(&request, server)?;
    }
    let query = SearchQuery { limit: MAX_LISTED, server, ..SearchQuery::default() };
    find(&request, &query).await
}

pub(super) async fn search(mut request: ApiRequest<'_>) -> Answer {
    let mut fields = Fields::new(std::mem::take(&mut request.query));
    let text = fields.required_text("q")?;
    let limit = fields.number("limit", 1..=MAX_FOUND)?.unwrap_or(DEFAULT_FOUND);
    let detail = fields.choice("detail", &ToolDetail::ALL)?.unwrap_or_default();
    let kind = fields.choice("kind", &ToolKind::NARROW)?.unwrap_or_default();
    let server = fields.text("server")?;
    fields.finish()?;
    if let Some(server) = &server {
        known_name(&request, server)?;
    }
    let text = text.chars().take(MAX_QUERY_CHARS).collect();
    let limit = usize::try_from(limit).unwrap_or(MAX_LISTED);
    find(&request, &SearchQuery { text, limit, detail, server, kind }).await
}

async fn find(request: &ApiRequest<'_>, query: &SearchQuery) -> Answer {
    let allowed = &request.connection().policy().tools;
    let SearchReply { tools, missing } = request.app().gateway.search(query, allowed).await?;
    let items: Vec<Value> = tools.iter().map(view).collect();
    ok(&json!({"items": items, "notes": describe_missing(&missing)}))
}

/// Returns one tool's whole definition.
pub(super) async fn get(request: ApiRequest<'_>) -> Answer {
    let server = known_name(&request, request.path(0))?;
    let name = format!("{server}.{}", request.path(1));
    let allowed = &request.connection().policy().tools;
    let tool = request.app().gateway.schema(&name, allowed, TypingsLanguage::TypeScript).await?;
    ok(&view(&tool))
}

/// Calls a tool. A client that disconnects cancels the call.
pub(super) async fn call(mut request: ApiRequest<'_>) -> Answer {
    let mut fields = Fields::new(std::mem::take(&mut request.body));
    let arguments = fields.take("arguments").unwrap_or_else(|| json!({}));
    fields.finish()?;
    if !arguments.is_object() {
        return Err(ApiError::invalid("arguments: it must be an object"));
    }
    let server = known_name(&request, request.path(0))?.as_str().to_owned();
    let (tool, args) = (request.path(1).to_owned(), Json::from_value(&arguments));
    let allowed = &request.connection().policy().tools;
    let ask = Ask::Tool { server, tool, args };
    let result = request.app().gateway.answer(ask, allowed, Language::TypeScript).await?;
    let value: Value = serde_json::from_str(result.text()).unwrap_or_default();
    ok(&json!({"value": value}))
}

fn view(tool: &ToolInfo) -> Value {
    let shown = json!({
        "name": tool.name,
        "server": tool.server,
        "tool": tool.tool,
        "description": tool.description,
        "signature": tool.signature,
        "typescript": tool.typescript,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "observed_output": tool.observed_output,
    });
    super::execution_view::without_nulls(shown)
}
