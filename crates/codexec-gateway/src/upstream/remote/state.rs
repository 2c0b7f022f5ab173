//! The state of one remote server and of the requests to it.

use std::{collections::HashMap, sync::Arc};

use codexec_types::clean_line;
use reqwest::header::HeaderValue;
use rmcp::model::{ServerCapabilities, ServerResult};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    mirrored_arguments::{MirroredArgument, find_mirrored_arguments},
    outgoing::OutgoingMessage,
};
use crate::upstream::{
    incoming::{InFlight, Message},
    server_events::ServerEvents,
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
    /// The changes that the server offers to announce, as a filter for a subscription.
    pub(super) offered_changes: Option<Value>,
    /// True if the clients of a relay want to know of all changes, not only of tools.
    is_relay: bool,
}

/// Returns a filter for the changes that the server announces and that anybody wants; `None` if
/// there are none.
fn offered_changes(declared: &ServerCapabilities, is_relay: bool) -> Option<Value> {
    let tools = declared.tools.as_ref().and_then(|it| it.list_changed);
    let prompts = declared.prompts.as_ref().and_then(|it| it.list_changed).filter(|_| is_relay);
    let resources = declared.resources.as_ref().and_then(|it| it.list_changed);
    let offers = [
        ("toolsListChanged", tools),
        ("promptsListChanged", prompts),
        ("resourcesListChanged", resources.filter(|_| is_relay)),
    ];
    let offered = offers.into_iter().filter(|(_, offer)| *offer == Some(true));
    let filter: Map<String, Value> =
        offered.map(|(name, _)| (name.to_owned(), true.into())).collect();
    (!filter.is_empty()).then_some(Value::Object(filter))
}

impl RemoteState {
    pub(super) fn new(server_events: ServerEvents) -> RemoteState {
        let is_relay = server_events.notices.is_some();
        let in_flight = InFlight::new(Arc::default(), ServerMessages::new(server_events));
        RemoteState { in_flight, is_relay, ..RemoteState::default() }
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
                self.offered_changes = offered_changes(&result.capabilities, self.is_relay);
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
