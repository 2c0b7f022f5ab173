//! The road of a tool call: name, permission, server, existence, arguments, call, result.

use std::sync::Arc;

use codexec_types::{CallCode, CallError, Denied, Json, ServerName, ToolFilter, nearest};
use rmcp::model::CallToolRequestParams;
use serde_json::{Map, Value};

use super::{Gateway, rounds::call_to_the_end};
use crate::{
    catalogue::{Entry, find_server, pairs},
    unwrap::unwrap,
    upstream::{Listing, Upstream, UpstreamError},
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

    /// The (server, tool) that a joined or bare name stands for.
    pub(super) async fn pair(
        &self,
        name: &str,
        allowed: &ToolFilter,
    ) -> Result<(ServerName, String), CallError> {
        let pairs = pairs(name, &self.fleet().names);
        let is_listed = |(server, tool): &&(ServerName, &str)| {
            let listing = self.upstream(server).and_then(|upstream| upstream.listing());
            listing.is_some_and(|listing| listing.find(tool).is_some())
        };
        if let Some((server, tool)) = pairs.iter().find(is_listed).or_else(|| pairs.first()) {
            return Ok((server.clone(), (*tool).to_owned()));
        }
        self.gather(allowed).await;
        let catalogue = self.catalogue().await;
        let bare: Vec<&Entry> =
            catalogue.all(allowed).filter(|entry| entry.tool.name == name).collect();
        match bare.as_slice() {
            [entry] => Ok((entry.server.clone(), entry.tool.name.clone())),
            [] => {
                let names: Vec<String> = catalogue.all(allowed).map(Entry::dotted_name).collect();
                let near = nearest(name, names.iter().map(String::as_str), 3);
                Err(not_found(&format!("no tool {:?}", shown(name)), &near))
            }
            several => {
                let names: Vec<String> = several.iter().map(|entry| entry.dotted_name()).collect();
                let which = names.join(", ");
                let message = format!("several servers have a tool {name:?}: {which}; say which");
                Err(CallError::new(CallCode::ToolNotFound, message))
            }
        }
    }

    /// A server by name or alias, if any of its tools may be called.
    pub(super) fn server(&self, name: &str, allowed: &ToolFilter) -> Result<ServerName, CallError> {
        let fleet = self.fleet();
        let Some(server) = find_server(name, &fleet.names) else {
            let known = fleet.names.iter().map(ServerName::as_str);
            let visible = known.filter(|server| allowed.allows_server(server));
            let near = nearest(name, visible, 3);
            return Err(not_found(&format!("no server {:?}", shown(name)), &near));
        };
        if allowed.allows_server(server.as_str()) {
            Ok(server.clone())
        } else {
            Err(denied(Denied::Server, server, "*"))
        }
    }

    async fn call(
        &self,
        server: &ServerName,
        tool: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let (real, result) = self.call_raw(server, tool, args, allowed).await?;
        let about = |err: CallError| err.about(server.as_str(), &real);
        let value = unwrap(result).map_err(|err| {
            about(CallError::new(CallCode::UpstreamError, format!("{server}.{real}: {err}")))
        })?;
        self.bounded(&value).map_err(about)
    }

    /// The tool's real name, and its result as it came.
    pub(super) async fn call_raw(
        &self,
        server: &ServerName,
        tool: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<(String, Value), CallError> {
        if !allowed.allows_server(server.as_str()) {
            return Err(denied(Denied::Server, server, tool));
        }
        let checked = allowed.check(server.as_str(), tool).map_err(|err| denied(err, server, tool));
        let upstream = self.known(server)?;
        let listing = match (listing(&upstream, tool).await, checked) {
            (Ok(listing), _) => listing,
            (Err(_), Err(denied)) => return Err(denied),
            (Err(err), Ok(())) => {
                return Err(upstream_error(server, &err).about(server.as_str(), tool));
            }
        };
        // Decided on the real name, which an alias may stand for.
        let found = listing.find(tool);
        let real = found.map_or(tool, |found| found.name.as_str());
        allowed.check(server.as_str(), real).map_err(|err| denied(err, server, real))?;
        let Some(found) = found else { return Err(self.no_tool(server, tool, allowed)) };
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
        let result = call_to_the_end(&upstream, params, &self.caller).await;
        let result = result.map_err(|err| about(upstream_error(server, &err)))?;
        Ok((real.to_owned(), result))
    }

    /// A server that may just have been taken away.
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

/// The list that has the tool, if any has: one from before may be out of date.
async fn listing(upstream: &Arc<Upstream>, tool: &str) -> Result<Arc<Listing>, UpstreamError> {
    let listing = upstream.listed().await?;
    if listing.find(tool).is_some() || upstream.connected().await.is_err() {
        return Ok(listing);
    }
    upstream.listed().await
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

fn not_found(what: &str, near: &[&str]) -> CallError {
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
