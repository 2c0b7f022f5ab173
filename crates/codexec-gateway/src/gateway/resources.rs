//! Resources and prompts, only of servers whose tools may be called, and bounded like everything
//! from a server.

use std::{collections::HashSet, sync::Arc};

use codexec_types::{CallCode, CallError, Json, ServerName, ToolFilter, clean_text, cut_text};
use futures::future::join_all;
use serde_json::{Map, Value, json};

use super::{
    Gateway,
    call::{shorten, upstream_error},
};
use crate::upstream::{Upstream, UpstreamError};

const PAGES: usize = 100;
/// The limit for one server.
const MAX_ITEMS: usize = 5_000;
const URI_BYTES: usize = 8 << 10;
/// The limit for descriptive texts.
const TEXT_BYTES: usize = 16 << 10;

/// An MCP list method, and the field of its result that holds the items.
#[derive(Clone, Copy)]
pub(super) struct ListMethod {
    method: &'static str,
    key: &'static str,
}

pub(super) const RESOURCES: ListMethod = ListMethod { method: "resources/list", key: "resources" };
pub(super) const TEMPLATES: ListMethod =
    ListMethod { method: "resources/templates/list", key: "resourceTemplates" };
pub(super) const PROMPTS: ListMethod = ListMethod { method: "prompts/list", key: "prompts" };

impl Gateway {
    /// Lists the items of one server, or of all servers that answer. Each item names its server.
    pub(super) async fn list_items(
        &self,
        list: ListMethod,
        server: Option<String>,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let servers = match &server {
            Some(server) => vec![self.resolve_server(server, allowed)?],
            None => {
                let names = self.server_names().into_iter();
                names.filter(|name| allowed.allows_server(name.as_str())).collect()
            }
        };
        let is_one = server.is_some();
        let lists = join_all(servers.iter().map(async |server| {
            if is_one {
                return self.fetch_items(list, server).await;
            }
            // A request for all servers does not wait long for one.
            let patience = self.inner.shared.settings.catalogue_wait;
            let found = tokio::time::timeout(patience, self.fetch_items(list, server)).await;
            found.unwrap_or_else(|_| {
                let why = format!(
                    "server \"{server}\" has not answered yet; list its items alone to wait longer"
                );
                Err(CallError::new(CallCode::UpstreamError, why))
            })
        }))
        .await;
        let mut items = Vec::new();
        let mut failed = None;
        for one in lists {
            match one {
                Ok(found) => items.extend(found),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            // A failed server does not hide the items of the others.
            Some(error) if items.is_empty() => Err(error),
            Some(_) | None => self.to_bounded_json(&Value::Array(items)),
        }
    }

    async fn fetch_items(
        &self,
        list: ListMethod,
        server: &ServerName,
    ) -> Result<Vec<Value>, CallError> {
        let upstream = self.readable_upstream(server).await?;
        let mut items = Vec::new();
        let mut cursors = HashSet::new();
        let mut params = json!({});
        for _ in 0..PAGES {
            let page = match upstream.ask(list.method, params).await {
                Ok(page) => page,
                // Resources and prompts are optional for a server.
                Err(UpstreamError::NoSuchMethod) => break,
                // Items received before the failure are kept.
                Err(_) if !items.is_empty() => break,
                Err(error) => return Err(upstream_error(server, &error)),
            };
            let found = page.get(list.key).and_then(Value::as_array);
            let left = MAX_ITEMS - items.len();
            let found = found.into_iter().flatten().filter_map(Value::as_object).take(left);
            items.extend(found.map(|item| describe_item(server, item)));
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(next) if items.len() < MAX_ITEMS && cursors.insert(next.to_owned()) => {
                    params = json!({ "cursor": next });
                }
                Some(_) | None => break,
            }
        }
        Ok(items)
    }

    /// Returns the server, unless all of its tools are held for approval.
    pub(super) async fn readable_upstream(
        &self,
        server: &ServerName,
    ) -> Result<Arc<Upstream>, CallError> {
        let upstream = self.require_upstream(server)?;
        if upstream.listing().is_none() {
            let connected = upstream.connect().await;
            connected.map_err(|err| upstream_error(server, &err))?;
        }
        let listing = upstream.listing().unwrap_or_default();
        if listing.tools.is_empty() && listing.held_tools().next().is_some() {
            let message = format!(
                "server \"{server}\" is in quarantine; the user can review and approve it \
                 with `codexec servers approve {server}`"
            );
            return Err(CallError::new(CallCode::ToolQuarantined, message));
        }
        Ok(upstream)
    }

    pub(super) async fn read_resource(
        &self,
        server: &str,
        uri: &str,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let server = self.resolve_server(server, allowed)?;
        if uri.is_empty() || uri.len() > URI_BYTES {
            let message = format!("a uri has 1 to {URI_BYTES} bytes; this one has {}", uri.len());
            return Err(CallError::new(CallCode::InvalidArgs, message));
        }
        let what = format!("resource {:?}", shorten(uri));
        let result = self.ask(&server, "resources/read", json!({ "uri": uri }), &what).await?;
        self.to_bounded_json(&unwrap_contents(result))
    }

    pub(super) async fn prompt(
        &self,
        server: &str,
        name: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let server = self.resolve_server(server, allowed)?;
        let params = json!({ "name": name, "arguments": self.parse_arguments(args).await? });
        let what = format!("prompt {:?}", shorten(name));
        let mut result = self.ask(&server, "prompts/get", params, &what).await?;
        if let Some(result) = result.as_object_mut() {
            result.remove("resultType");
            result.remove("_meta");
        }
        self.to_bounded_json(&result)
    }

    async fn ask(
        &self,
        server: &ServerName,
        method: &'static str,
        params: Value,
        what: &str,
    ) -> Result<Value, CallError> {
        let upstream = self.readable_upstream(server).await?;
        let failed = |why: &str| {
            let message = format!("server \"{server}\", {what}: {why}");
            CallError::new(CallCode::UpstreamError, message)
        };
        let result = upstream.ask(method, params).await;
        let result = result.map_err(|error| match error {
            UpstreamError::NoSuchMethod => failed("the server does not support this"),
            other => failed(&other.to_string()),
        })?;
        match result.get("resultType").and_then(Value::as_str) {
            Some("complete") | None => Ok(result),
            Some(_) => Err(failed("it asks for input first, which is not supported")),
        }
    }
}

/// Cleans an item's texts and adds its server.
fn describe_item(server: &ServerName, item: &Map<String, Value>) -> Value {
    let mut out = Map::new();
    out.insert("server".to_owned(), server.as_str().into());
    for (key, value) in item {
        let mut value = value.clone();
        clean_texts(&mut value);
        if key != "server" {
            out.insert(key.clone(), value);
        }
    }
    Value::Object(out)
}

pub(super) fn clean_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = cut_text(&clean_text(text), TEXT_BYTES),
        Value::Array(list) => list.iter_mut().for_each(clean_texts),
        Value::Object(fields) => fields.values_mut().for_each(clean_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a single text as it is, or parsed if its type is JSON; anything else as its blocks.
fn unwrap_contents(mut result: Value) -> Value {
    let Some(Value::Array(mut blocks)) = result.get_mut("contents").map(Value::take) else {
        return result;
    };
    if blocks.len() != 1 {
        return Value::Array(blocks);
    }
    let block = blocks.pop().unwrap_or_default();
    let is_json = block
        .get("mimeType")
        .and_then(Value::as_str)
        .is_some_and(|mime| mime == "application/json" || mime.ends_with("+json"));
    match block.get("text").and_then(Value::as_str) {
        Some(text) if is_json => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        Some(text) => text.into(),
        None => block,
    }
}
