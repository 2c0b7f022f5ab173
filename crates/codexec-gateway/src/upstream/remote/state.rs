//! The state of one remote server and of the requests to it.

use std::{collections::HashMap, sync::Arc};

use codexec_types::clean_line;
use reqwest::header::HeaderValue;
use rmcp::model::ServerResult;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    mirrored_arguments::{MirroredArgument, find_mirrored_arguments},
    outgoing::OutgoingMessage,
};
use crate::upstream::{
    connection::ServerEvents,
    incoming::{InFlight, Message},
    server_messages::ServerMessages,
};

const MIRRORED_TOOLS: usize = 5_000;

#[derive(Default)]
pub(super) struct RemoteState {
    pub(super) in_flight: InFlight,
    pub(super) calls: HashMap<i64, CancellationToken>,
    /// Session id from the handshake of a server before 2026-07-28.
    pub(super) session: Option<HeaderValue>,
    pub(super) version: Option<HeaderValue>,
    pub(super) mirrored: HashMap<String, Vec<MirroredArgument>>,
    pub(super) is_modern: bool,
    /// True if the server offers a subscription to changes of its tools.
    pub(super) offers_changes: bool,
}

impl RemoteState {
    pub(super) fn new(server_events: ServerEvents) -> RemoteState {
        let in_flight = InFlight::new(Arc::default(), ServerMessages::new(server_events));
        RemoteState { in_flight, ..RemoteState::default() }
    }

    /// Stores the parts of an answer that later requests need.
    pub(super) fn learn(&mut self, message: &mut Message, of: Option<&OutgoingMessage>) {
        let Message::Response(response) = message else { return };
        match &mut response.result {
            ServerResult::InitializeResult(result) => {
                let version = HeaderValue::from_str(result.protocol_version.as_str());
                self.version = version.ok();
            }
            ServerResult::DiscoverResult(result) => {
                let tools = result.capabilities.tools.as_ref();
                self.offers_changes = tools.is_some_and(|it| it.list_changed == Some(true));
            }
            ServerResult::CustomResult(result)
                if of.is_some_and(|of| of.is_modern && of.method == "tools/list") =>
            {
                self.learn_tools(&mut result.0);
            }
            _ => {}
        }
    }

    /// Removes the tools whose `x-mcp-header` annotations are invalid.
    fn learn_tools(&mut self, list: &mut Value) {
        let Some(tools) = list.get_mut("tools").and_then(Value::as_array_mut) else { return };
        tools.retain(|tool| {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            match find_mirrored_arguments(tool.get("inputSchema").unwrap_or(&Value::Null)) {
                Ok(found) if found.is_empty() => {
                    self.mirrored.remove(name);
                    true
                }
                Ok(found) => {
                    if self.mirrored.len() < MIRRORED_TOOLS {
                        self.mirrored.insert(name.to_owned(), found);
                    }
                    true
                }
                Err(error) => {
                    tracing::warn!(tool = %clean_line(name), %error, "tool left out");
                    false
                }
            }
        });
    }
}
