//! The road of a tool call: name, permission, server, existence, arguments, call, result.

use std::sync::Arc;

use codexec_types::{CallCode, CallError, Denied, Json, ServerName, ToolFilter};
use rmcp::model::CallToolRequestParams;
use serde_json::{Map, Value};

use super::{Gateway, rounds::call_to_the_end};
use crate::{
    tool::Tool,
    unwrap::unwrap,
    upstream::{Upstream, UpstreamError},
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
        let upstream = self.known(server)?;
        if let Err(err) = settle(&upstream, tool).await {
            checked?;
            return Err(upstream_error(server, &err).about(server.as_str(), tool));
        }
        let args = arguments(args).map_err(|err| err.about(server.as_str(), tool))?;
        let mut is_second = false;
        loop {
            let found = self.usable(&upstream, tool, allowed).await?;
            let real = found.name.as_str();
            let about = |err: CallError| err.about(server.as_str(), real);
            if let Err(wrong) = found.arguments().check(found.input_schema(), &args) {
                let message = format!("{server}.{real}: {wrong}");
                return Err(about(CallError::new(CallCode::InvalidArgs, message)));
            }
            let mut params = CallToolRequestParams::new(real.to_owned());
            params.arguments = args.as_object().cloned();
            match call_to_the_end(&upstream, tool, &found, params, &self.caller).await {
                // The list in which it was found was an old one.
                Err(UpstreamError::Outdated) if !is_second => is_second = true,
                Err(err) => return Err(about(upstream_error(server, &err))),
                Ok(result) => return Ok((found, result)),
            }
        }
    }

    pub(super) fn known(&self, server: &ServerName) -> Result<Arc<Upstream>, CallError> {
        let gone = || not_found(&format!("no server \"{server}\""), &[]);
        self.upstream(server).ok_or_else(gone)
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
    pub fn bounded(&self, value: &Value) -> Result<Json, CallError> {
        let json = Json::from_value(value);
        let (bytes, limit) = (json.text().len(), self.inner.shared.settings.result_bytes);
        if bytes <= limit {
            return Ok(json);
        }
        let message = format!("the result has {bytes} bytes; at most {limit} fit; ask for less");
        Err(CallError::new(CallCode::UpstreamError, message))
    }
}

/// Sees to a list that has the tool, if any has: one from before may be out of date.
async fn settle(upstream: &Arc<Upstream>, tool: &str) -> Result<(), UpstreamError> {
    let listing = upstream.listing();
    if listing.as_ref().is_some_and(|listing| listing.find(tool).is_some()) {
        return Ok(());
    }
    match upstream.connected().await {
        Ok(connection) => upstream.agreed(&connection).await,
        // It is known by what it had, whatever keeps it from starting now.
        Err(_) if listing.is_some() => Ok(()),
        Err(err) => Err(err),
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
