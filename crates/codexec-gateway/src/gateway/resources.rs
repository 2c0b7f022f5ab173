//! Resources and prompts, only of servers whose tools may be called, and bounded like everything
//! from a server.

use std::{collections::HashSet, sync::Arc};

use codexec_types::{CallCode, CallError, Json, ServerName, ToolFilter};
use futures::future::join_all;
use serde_json::{Map, Value, json};

use super::{
    Gateway,
    call::{shown, upstream_error},
};
use crate::{
    clean::{clean, cut},
    upstream::{Upstream, UpstreamError},
};

const PAGES: usize = 100;
/// The limit for one server.
const THINGS: usize = 5_000;
const URI_BYTES: usize = 8 << 10;
/// The limit for descriptive texts.
const TEXT_BYTES: usize = 16 << 10;

/// An MCP list method, and the field of its result that holds the items.
#[derive(Clone, Copy)]
pub(super) struct List {
    method: &'static str,
    key: &'static str,
}

pub(super) const RESOURCES: List = List { method: "resources/list", key: "resources" };
pub(super) const TEMPLATES: List =
    List { method: "resources/templates/list", key: "resourceTemplates" };
pub(super) const PROMPTS: List = List { method: "prompts/list", key: "prompts" };

impl Gateway {
    /// Lists the items of one server, or of all servers that answer. Each item names its server.
    pub(super) async fn things(
        &self,
        list: List,
        server: Option<String>,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let servers = match &server {
            Some(server) => vec![self.server(server, allowed)?],
            None => {
                let names = self.server_names().into_iter();
                names.filter(|name| allowed.allows_server(name.as_str())).collect()
            }
        };
        let is_one = server.is_some();
        let lists = join_all(servers.iter().map(async |server| {
            if is_one {
                return self.list_of(list, server).await;
            }
            // A request for all servers does not wait long for one.
            let patience = self.inner.shared.settings.catalogue_wait;
            let found = tokio::time::timeout(patience, self.list_of(list, server)).await;
            found.unwrap_or_else(|_| {
                let why = format!("server \"{server}\" does not answer yet; ask for its alone");
                Err(CallError::new(CallCode::UpstreamError, why))
            })
        }))
        .await;
        let mut things = Vec::new();
        let mut failed = None;
        for one in lists {
            match one {
                Ok(found) => things.extend(found),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            // A failed server does not hide the items of the others.
            Some(error) if things.is_empty() => Err(error),
            Some(_) | None => self.bounded(&Value::Array(things)),
        }
    }

    async fn list_of(&self, list: List, server: &ServerName) -> Result<Vec<Value>, CallError> {
        let upstream = self.readable(server).await?;
        let mut things = Vec::new();
        let mut cursors = HashSet::new();
        let mut params = json!({});
        for _ in 0..PAGES {
            let page = match upstream.ask(list.method, params).await {
                Ok(page) => page,
                // Resources and prompts are optional for a server.
                Err(UpstreamError::NoSuchMethod) => break,
                // Items received before the failure are kept.
                Err(_) if !things.is_empty() => break,
                Err(error) => return Err(upstream_error(server, &error)),
            };
            let found = page.get(list.key).and_then(Value::as_array);
            let room = THINGS - things.len();
            let found = found.into_iter().flatten().filter_map(Value::as_object).take(room);
            things.extend(found.map(|thing| described(server, thing)));
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(next) if things.len() < THINGS && cursors.insert(next.to_owned()) => {
                    params = json!({ "cursor": next });
                }
                Some(_) | None => break,
            }
        }
        Ok(things)
    }

    /// Returns the server, unless all of its tools are held for approval.
    async fn readable(&self, server: &ServerName) -> Result<Arc<Upstream>, CallError> {
        let upstream = self.known(server)?;
        if upstream.listing().is_none() {
            let connected = upstream.connected().await;
            connected.map_err(|err| upstream_error(server, &err))?;
        }
        let listing = upstream.listing().unwrap_or_default();
        if listing.tools.is_empty() && listing.held_tools().next().is_some() {
            let message = format!(
                "server \"{server}\" is in quarantine; the user can look at it and let it be used \
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
        let server = self.server(server, allowed)?;
        if uri.is_empty() || uri.len() > URI_BYTES {
            let message = format!("a uri has 1 to {URI_BYTES} bytes; this one has {}", uri.len());
            return Err(CallError::new(CallCode::InvalidArgs, message));
        }
        let what = format!("resource {:?}", shown(uri));
        let result = self.ask(&server, "resources/read", json!({ "uri": uri }), &what).await?;
        self.bounded(&contents(result))
    }

    pub(super) async fn prompt(
        &self,
        server: &str,
        name: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let server = self.server(server, allowed)?;
        let params = json!({ "name": name, "arguments": self.arguments(args).await? });
        let what = format!("prompt {:?}", shown(name));
        let mut result = self.ask(&server, "prompts/get", params, &what).await?;
        if let Some(result) = result.as_object_mut() {
            result.remove("resultType");
            result.remove("_meta");
        }
        self.bounded(&result)
    }

    async fn ask(
        &self,
        server: &ServerName,
        method: &'static str,
        params: Value,
        what: &str,
    ) -> Result<Value, CallError> {
        let upstream = self.readable(server).await?;
        let failed = |why: &str| {
            let message = format!("server \"{server}\", {what}: {why}");
            CallError::new(CallCode::UpstreamError, message)
        };
        let result = upstream.ask(method, params).await;
        let result = result.map_err(|error| match error {
            UpstreamError::NoSuchMethod => failed("it has none"),
            other => failed(&other.to_string()),
        })?;
        match result.get("resultType").and_then(Value::as_str) {
            Some("complete") | None => Ok(result),
            Some(_) => Err(failed("it wants to know something first, which is not supported")),
        }
    }
}

/// Cleans an item's texts and adds its server.
fn described(server: &ServerName, thing: &Map<String, Value>) -> Value {
    let mut out = Map::new();
    out.insert("server".to_owned(), server.as_str().into());
    for (key, value) in thing {
        let mut value = value.clone();
        clean_texts(&mut value);
        if key != "server" {
            out.insert(key.clone(), value);
        }
    }
    Value::Object(out)
}

fn clean_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = cut(&clean(text), TEXT_BYTES),
        Value::Array(list) => list.iter_mut().for_each(clean_texts),
        Value::Object(fields) => fields.values_mut().for_each(clean_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a single text as it is, or parsed if its type is JSON; anything else as its blocks.
fn contents(mut result: Value) -> Value {
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
