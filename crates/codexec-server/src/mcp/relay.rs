//! One server behind codexec's tokens, trust and limits: its tools under their own names, its
//! prompts, resources, completions, log messages and questions, for clients of both eras.

mod calls;
mod notices;
mod passing;
mod server;
mod states;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codexec_gateway::{Caller, QuestionSupport, Relay, RelayCall, RelayRequest};
use codexec_types::{CallCode, CallError, ServerName};
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, JsonObject, ServerCapabilities};
use serde_json::Value;

use self::notices::{LogLevel, Subscribers};
pub(super) use self::server::RelayServer;
use self::states::SealedStates;
use super::pending_call::ParkedCalls;
use crate::{App, Connection};

/// The server that all clients with one token reach at one path.
pub(super) struct RelayTarget {
    app: Arc<App>,
    connection: Arc<Connection>,
    server: ServerName,
    link: Mutex<Option<RelayLink>>,
    states: SealedStates,
    parked_calls: ParkedCalls,
    subscribers: Subscribers,
    /// The most verbose level that any client has set.
    log_level: Mutex<Option<LogLevel>>,
}

/// The connection to the server, and what it declared when it was connected last.
#[derive(Clone)]
struct RelayLink {
    relay: Arc<Relay>,
    capabilities: ServerCapabilities,
    /// True if the server speaks a protocol version without a handshake.
    is_modern: bool,
}

impl RelayTarget {
    pub(super) fn new(app: Arc<App>, connection: Arc<Connection>, server: ServerName) -> Self {
        RelayTarget {
            app,
            connection,
            server,
            link: Mutex::default(),
            states: SealedStates::default(),
            parked_calls: ParkedCalls::default(),
            subscribers: Subscribers::default(),
            log_level: Mutex::default(),
        }
    }

    /// Connects to the server, so that its capabilities are known. A server whose entry has changed
    /// gets a new connection.
    pub(super) async fn prepare(&self) -> Result<(), CallError> {
        let known = self.lock().as_ref().map(|link| Arc::clone(&link.relay));
        let current = known.filter(|relay| relay.is_current(&self.app.gateway));
        let relay = match current {
            Some(relay) => relay,
            None => {
                let found = self.app.gateway.relay_to(&self.server);
                Arc::new(found.ok_or_else(|| {
                    let message = format!("there is no server \"{}\"", self.server);
                    CallError::new(CallCode::ToolNotFound, message)
                })?)
            }
        };
        let (capabilities, is_modern) = relay.connect().await?;
        let capabilities = serde_json::from_value(capabilities).unwrap_or_default();
        let link = RelayLink { relay, capabilities, is_modern };
        let mut known = self.lock();
        // Of two clients that came first at the same time, one connection stays.
        let is_known = known.as_ref().is_some_and(|known| {
            !Arc::ptr_eq(&known.relay, &link.relay) && known.relay.is_current(&self.app.gateway)
        });
        if !is_known {
            *known = Some(link);
        }
        Ok(())
    }

    /// Sends a request with one parameter, for which no client waits.
    async fn ask(&self, method: &'static str, name: &str, value: Value) -> Result<(), ErrorData> {
        let request = RelayRequest {
            method,
            params: JsonObject::from_iter([(name.to_owned(), value)]),
            call: RelayCall::default(),
        };
        let (caller, support) = (Caller::default(), QuestionSupport::default());
        let sent = self.link()?.relay.request(&caller, request, support).await;
        sent.map(drop).map_err(calls::to_error)
    }

    fn link(&self) -> Result<RelayLink, ErrorData> {
        self.lock().clone().ok_or_else(|| {
            let message = format!("server \"{}\" is not connected", self.server);
            ErrorData::new(ErrorCode::INTERNAL_ERROR, message, None)
        })
    }

    /// Returns the capabilities of the server that are passed through.
    fn capabilities(&self) -> ServerCapabilities {
        let link = self.lock().clone();
        let Some(RelayLink { capabilities: declared, is_modern, .. }) = link else {
            return ServerCapabilities::builder().enable_tools().build();
        };
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        capabilities.prompts = declared.prompts;
        capabilities.resources = declared.resources;
        capabilities.completions = declared.completions;
        capabilities.logging = declared.logging;
        if let Some(resources) = capabilities.resources.as_mut().filter(|_| is_modern) {
            // We do not subscribe to single resources of such servers.
            resources.subscribe = None;
        }
        capabilities
    }

    fn lock(&self) -> MutexGuard<'_, Option<RelayLink>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
