//! The path of a tool call: name, permission, server, lookup, arguments, call, result.

use std::sync::Arc;

use codexec_types::{
    CallCode, CallError, Json, ServerName, ToolDenied, ToolFilter, estimate_arguments_size,
};
use rmcp::model::CallToolRequestParams;
use serde_json::{Map, Value};

use super::{Gateway, RelayCall, RelayError, blocking::is_large, rounds::Rounds};
use crate::{
    arguments::{ArgumentCheck, check, check_quickly},
    tool::Tool,
    tool_result::unwrap_result,
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
        let server =
            self.resolve_server(server, allowed).map_err(|err| match err.server.clone() {
                Some(server) => err.about(&server, &shorten(tool)),
                None => err,
            })?;
        self.call(&server, tool, args, allowed).await
    }

    pub(super) async fn call_named(
        &self,
        name: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<Json, CallError> {
        let (server, tool) = self.resolve_name(name, allowed).await?;
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
        let rendered = if is_large(&result) {
            let (gateway, server, tool) = (self.clone(), server.clone(), Arc::clone(&tool));
            self.run_blocking(move || gateway.render(&server, &tool, result)).await?
        } else {
            self.render(server, &tool, result)
        };
        rendered.map_err(|err| err.about(server.as_str(), &tool.name))
    }

    /// Converts a result into what a guest gets.
    fn render(&self, server: &ServerName, tool: &Tool, result: Value) -> Result<Json, CallError> {
        let value = unwrap_result(result).map_err(|err| {
            let message = format!("{server}.{}: {err}", tool.name);
            CallError::new(CallCode::UpstreamError, message)
        })?;
        self.inner.observed.observe(server, tool, &value);
        self.to_bounded_json(&value)
    }

    /// Returns the tool that was meant, and its raw result.
    pub(super) async fn call_raw(
        &self,
        server: &ServerName,
        tool: &str,
        args: &Json,
        allowed: &ToolFilter,
    ) -> Result<(Arc<Tool>, Value), CallError> {
        let called = self.call_round(server, tool, args, allowed, RelayCall::default()).await;
        called.map_err(|error| match error {
            RelayError::Refused(error) => error,
            RelayError::Rejected { tool, error } => {
                let error = upstream_error(server, &UpstreamError::Rejected(*error));
                error.about(server.as_str(), &tool)
            }
        })
    }

    /// The same, with what the client of a relay adds to a call. Errors of the server stay as they
    /// are.
    pub(super) async fn call_round(
        &self,
        server: &ServerName,
        tool: &str,
        args: &Json,
        allowed: &ToolFilter,
        relayed: RelayCall,
    ) -> Result<(Arc<Tool>, Value), RelayError> {
        if !allowed.allows_server(server.as_str()) {
            return Err(denied_error(ToolDenied::Server, server, tool).into());
        }
        let checked =
            allowed.check(server.as_str(), tool).map_err(|err| denied_error(err, server, tool));
        let upstream = self.require_upstream(server)?;
        if let Err(err) = ensure_tool_listed(&upstream, tool).await {
            checked?;
            return Err(upstream_error(server, &err).about(server.as_str(), tool).into());
        }
        // THREAT[UP-11]: arguments waiting for a server are counted over all callers, parsed or
        // not.
        let weight =
            estimate_arguments_size(args).map_err(|err| err.about(server.as_str(), tool))?;
        let _memory = upstream
            .reserve_argument_memory(weight)
            .await
            .map_err(|err| upstream_error(server, &err).about(server.as_str(), tool))?;
        let mut is_second = false;
        loop {
            let values = self.parse_arguments(args).await;
            let values = values.map_err(|err| err.about(server.as_str(), tool))?;
            let found = self.resolve_tool(&upstream, tool, allowed).await?;
            let real = found.name.as_str();
            let about = |err: CallError| err.about(server.as_str(), real);
            let values = self.check_arguments(&found, values).await.map_err(|err| {
                let message = format!("{server}.{real}: {}", err.message);
                about(CallError { message, ..err })
            })?;
            let called =
                self.call_until_complete(&upstream, (tool, &found), values, &relayed).await;
            match called {
                // The tool came from an outdated list.
                Err(UpstreamError::Outdated) if !is_second => is_second = true,
                Err(UpstreamError::Rejected(error)) => {
                    return Err(RelayError::rejected(&found.name, error));
                }
                Err(err) => return Err(about(upstream_error(server, &err)).into()),
                Ok(result) => return Ok((found, result)),
            }
        }
    }

    /// Calls again with the caller's answers, as long as the server asks for them.
    async fn call_until_complete(
        &self,
        upstream: &Arc<Upstream>,
        (requested_name, tool): (&str, &Arc<Tool>),
        values: Map<String, Value>,
        relayed: &RelayCall,
    ) -> Result<Value, UpstreamError> {
        let mut rounds = Rounds::new(relayed.input.clone());
        let mut params = CallToolRequestParams::new(tool.name.clone());
        params.arguments = Some(values);
        loop {
            let input = std::mem::take(&mut rounds.input);
            (params.input_responses, params.request_state) = (input.responses, input.state);
            // Without further rounds, nobody needs the arguments again.
            let sent = match self.caller.can_answer() {
                true => params.clone(),
                false => std::mem::replace(&mut params, CallToolRequestParams::new("")),
            };
            let meta = relayed.meta();
            let result = upstream.call(requested_name, tool, sent, meta, &self.caller).await?;
            if let Some(last) = rounds.finish(upstream, &self.caller, result).await? {
                return Ok(last);
            }
        }
    }

    /// Returns the named parameters. JSON null stands for no parameters.
    pub(super) async fn parse_arguments(
        &self,
        args: &Json,
    ) -> Result<Map<String, Value>, CallError> {
        match self.parse_json(args).await? {
            Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(args)) => Ok(args),
            Some(_) | None => {
                let message = "arguments must be one object of named parameters, like {\"id\": 1}";
                Err(CallError::new(CallCode::InvalidArgs, message))
            }
        }
    }

    /// Returns the arguments if they are valid. The quick check on the event loop suffices for
    /// nearly every call.
    async fn check_arguments(
        &self,
        tool: &Arc<Tool>,
        args: Map<String, Value>,
    ) -> Result<Map<String, Value>, CallError> {
        if tool.is_slow_to_parse() {
            let tool = Arc::clone(tool);
            self.run_blocking(move || {
                tool.raw_input_schema();
            })
            .await?;
        }
        let args = Value::Object(args);
        let wrong = |why: String| CallError::new(CallCode::InvalidArgs, why);
        let args = match check_quickly(&self.inner.checker, tool.raw_input_schema(), &args) {
            ArgumentCheck::Valid => args,
            ArgumentCheck::Invalid(why) => return Err(wrong(why)),
            ArgumentCheck::Unfinished => {
                let (inner, tool) = (Arc::clone(&self.inner), Arc::clone(tool));
                let check = move || {
                    let checked = check(&inner.checker, tool.raw_input_schema(), &args);
                    (checked, args)
                };
                let (checked, args) = self.run_blocking(check).await?;
                checked.map_err(wrong)?;
                args
            }
        };
        match args {
            Value::Object(args) => Ok(args),
            _ => Ok(Map::new()),
        }
    }

    pub(super) fn require_upstream(&self, server: &ServerName) -> Result<Arc<Upstream>, CallError> {
        let missing = || not_found_error(&format!("no server \"{server}\""), &[]);
        self.upstream(server).ok_or_else(missing)
    }

    pub(super) fn no_tool_error(
        &self,
        server: &ServerName,
        tool: &str,
        allowed: &ToolFilter,
    ) -> CallError {
        let listing = self.upstream(server).and_then(|upstream| upstream.listing());
        let listing = listing.unwrap_or_default();
        let mut near = listing.nearest(tool);
        near.retain(|name| allowed.check(server.as_str(), name).is_ok());
        let tool = shorten(tool);
        not_found_error(&format!("no tool {tool:?} on server \"{server}\""), &near)
            .about(server.as_str(), &tool)
    }

    /// Serializes a value for the guest, unless it exceeds the size limit.
    pub fn to_bounded_json(&self, value: &Value) -> Result<Json, CallError> {
        let json = Json::from_value(value);
        let (bytes, limit) = (json.text().len(), self.inner.shared.settings.result_bytes);
        if bytes <= limit {
            return Ok(json);
        }
        let message = format!("the result has {bytes} bytes; at most {limit} fit; ask for less");
        Err(CallError::new(CallCode::UpstreamError, message))
    }
}

/// Makes sure that the list is current enough to show whether the tool exists.
async fn ensure_tool_listed(upstream: &Arc<Upstream>, tool: &str) -> Result<(), UpstreamError> {
    let listing = upstream.listing();
    let is_known = listing.as_ref().is_some_and(|listing| listing.find(tool).is_some());
    upstream.count_lookup(is_known);
    if is_known {
        return Ok(());
    }
    match upstream.connect().await {
        Ok(connection) => upstream.wait_for_current_list(&connection).await,
        // The last known list still serves if the server cannot start.
        Err(_) if listing.is_some() => Ok(()),
        Err(err) => Err(err),
    }
}

pub(super) fn upstream_error(server: &ServerName, error: &UpstreamError) -> CallError {
    let text = format!("server \"{server}\": {error}");
    CallError { retry_s: error.pause_s(), ..CallError::new(error.call_code(), text) }
}

/// The caller of the gateway adds what to ask for, which depends on the toolset.
pub(super) fn denied_error(denied: ToolDenied, server: &ServerName, tool: &str) -> CallError {
    let tool = shorten(tool);
    let (code, message) = match denied {
        ToolDenied::Server => {
            (CallCode::ServerNotAllowed, format!("server \"{server}\" may not be called"))
        }
        ToolDenied::Tool => {
            (CallCode::ToolNotAllowed, format!("tool \"{server}.{tool}\" may not be called"))
        }
    };
    CallError::new(code, message).about(server.as_str(), &tool)
}

pub(super) fn not_found_error(what: &str, near: &[&str]) -> CallError {
    let message = match near {
        [] => format!("{what}; search for one with searchTools(\"..\")"),
        near => format!("{what}; did you mean {}?", near.join(", ")),
    };
    CallError::new(CallCode::ToolNotFound, message)
}

/// Cleans and cuts a guest's text for use in a message.
pub(super) fn shorten(name: &str) -> String {
    codexec_types::cut_text(&codexec_types::clean_line(name), 100)
}
