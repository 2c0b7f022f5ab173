//! The road of a tool call: name, permission, server, existence, arguments, call, result.

use std::sync::Arc;

use codexec_types::{CallCode, CallError, Denied, Json, ServerName, ToolFilter};
use rmcp::model::CallToolRequestParams;
use serde_json::{Map, Value};

use super::{Gateway, rounds::call_to_the_end};
use crate::{
    tool::Tool,
    unwrap::unwrap,
    upstream::{Connection, Upstream, UpstreamError},
};

impl Gateway {
    pub(super) async fn call_tool(
        &self,
        server: &str,
        tool: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let server = self.server(server, allowed)?;
        self.call(&server, tool, args, allowed).await
    }

    pub(super) async fn call_named(
        &self,
        name: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let (server, tool) = self.pair(name, allowed).await?;
        self.call(&server, &tool, args, allowed).await
    }

    async fn call(
        &self,
        server: &ServerName,
        tool: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let (tool, result) = self.call_raw(server, tool, args, allowed).await?;
        let real = tool.name.as_str();
        let about = |err: CallError| err.about(server.as_str(), real);
        let value = unwrap(result).map_err(|err| {
            about(CallError::new(CallCode::UpstreamError, format!("{server}.{real}: {err}")))
        })?;
        self.inner.observed.look(server, &tool, &value);
        self.bounded(&value).map_err(about)
    }

    /// The tool that was meant, and its result as it came.
    pub(super) async fn call_raw(
        &self,
        server: &ServerName,
        tool: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<(Arc<Tool>, Value), CallError> {
        if !allowed.allows_server(server.as_str()) {
            return Err(denied(Denied::Server, server, tool));
        }
        let checked = allowed.check(server.as_str(), tool).map_err(|err| denied(err, server, tool));
        let (upstream, connection) = match (self.connected(server).await, checked) {
            (Ok(connected), _) => connected,
            (Err(_), Err(denied)) => return Err(denied),
            (Err(err), Ok(())) => return Err(err.about(server.as_str(), tool)),
        };
        let agreed = upstream.agreed(&connection).await;
        agreed.map_err(|err| upstream_error(server, &err).about(server.as_str(), tool))?;
        let found = self.usable(&upstream, tool, allowed).await?;
        let real = found.name.as_str();
        let about = |err: CallError| err.about(server.as_str(), real);
        let args = arguments(args).map_err(about)?;
        let args = match found.arguments().check(&found.input_schema, &args) {
            Ok(()) => args,
            Err(wrong) => {
                let message = format!("{server}.{real}: {wrong}");
                return Err(about(CallError::new(CallCode::InvalidArgs, message)));
            }
        };
        let params = CallToolRequestParams::new(real.to_owned());
        let params = match args {
            Value::Object(args) => params.with_arguments(args),
            _ => params,
        };
        let result = call_to_the_end(&upstream, &connection, &found, params, &self.caller).await;
        let result = result.map_err(|err| about(upstream_error(server, &err)))?;
        Ok((found, result))
    }

    pub(super) async fn connected(
        &self,
        server: &ServerName,
    ) -> Result<(Arc<Upstream>, Arc<Connection>), CallError> {
        let Some(upstream) = self.upstream(server) else {
            return Err(not_found(&format!("no server \"{server}\""), &[]));
        };
        match upstream.connected().await {
            Ok(connection) => Ok((upstream, connection)),
            Err(err) => Err(upstream_error(server, &err)),
        }
    }

    pub(super) fn no_tool(
        &self,
        server: &ServerName,
        tool: &str,
        allowed: &ToolFilter,
    ) -> CallError {
        let listing = self.upstream(server).and_then(|upstream| upstream.listing());
        let listing = listing.unwrap_or_default();
        let mut near = listing.nearest(tool);
        near.retain(|name| allowed.check(server.as_str(), name).is_ok());
        let tool = shown(tool);
        not_found(&format!("no tool {tool:?} on server \"{server}\""), &near)
            .about(server.as_str(), &tool)
    }

    /// As text for the guest, unless there is too much of it.
    pub(super) fn bounded(&self, value: &Value) -> Result<Json, CallError> {
        let json = Json::from_value(value);
        let (bytes, limit) = (json.text().len(), self.inner.settings.result_bytes);
        if bytes <= limit {
            return Ok(json);
        }
        let message = format!("the result has {bytes} bytes; at most {limit} fit; ask for less");
        Err(CallError::new(CallCode::UpstreamError, message))
    }
}

/// Nothing at all stands for no arguments.
pub(super) fn arguments(args: &Json) -> Result<Value, CallError> {
    match args.to_value() {
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(args @ Value::Object(_)) => Ok(args),
        Ok(_) | Err(_) => {
            let message = "arguments must be one object of named parameters, like {\"id\": 1}";
            Err(CallError::new(CallCode::InvalidArgs, message))
        }
    }
}

pub(super) fn upstream_error(server: &ServerName, error: &UpstreamError) -> CallError {
    CallError::new(CallCode::UpstreamError, format!("server \"{server}\": {error}"))
}

pub(super) fn denied(denied: Denied, server: &ServerName, tool: &str) -> CallError {
    let tool = shown(tool);
    let (code, message) = match denied {
        Denied::Server => (
            CallCode::ServerNotAllowed,
            format!(
                "server \"{server}\" may not be called; allow it with \"{server}.*\" in allowed_tools"
            ),
        ),
        Denied::Tool => (
            CallCode::ToolNotAllowed,
            format!("tool \"{server}.{tool}\" may not be called; add it to allowed_tools"),
        ),
    };
    CallError::new(code, message).about(server.as_str(), &tool)
}

pub(super) fn not_found(what: &str, near: &[&str]) -> CallError {
    let message = match near {
        [] => format!("{what}; search for one with searchTools(\"..\")"),
        near => format!("{what}; did you mean {}?", near.join(", ")),
    };
    CallError::new(CallCode::ToolNotFound, message)
}

/// A guest's own words, cut for a message.
pub(super) fn shown(name: &str) -> String {
    crate::clean::cut(&crate::clean::clean_line(name), 100)
}
