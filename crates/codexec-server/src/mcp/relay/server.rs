//! The relay as a server of MCP.

use std::sync::{Arc, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestMethod,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerConfig,
    SetLevelRequestMethod, SubscribeRequestMethod, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestMethod, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::RelayTarget;
use super::calls::{Continuation, Relayed};
use super::notices::{self, LogLevel, Wishes};
use crate::mcp::direct::{self, KnownList, ListChangeDetector, ToolListSource, hash_tools};
use crate::mcp::raw_result::{finish_listing, replace_result};

/// The connection of one client.
pub(in crate::mcp) struct RelayServer {
    pub(super) target: Arc<RelayTarget>,
    pub(super) wishes: Wishes,
    known_list: KnownList,
    /// Cancelled when the client has disconnected.
    disconnected: CancellationToken,
}

impl RelayServer {
    pub(in crate::mcp) fn new(
        target: Arc<RelayTarget>,
        disconnected: CancellationToken,
    ) -> RelayServer {
        let (wishes, known_list) = (Wishes::default(), KnownList::default());
        RelayServer { target, wishes, known_list, disconnected }
    }

    fn tool_list(&self) -> Result<ToolListSource, ErrorData> {
        let relay = self.target.link()?.relay;
        Ok(ToolListSource::Relay(relay, Arc::clone(&self.target.connection)))
    }
}

impl Drop for RelayServer {
    /// Ends the subscriptions of a client that has disconnected.
    fn drop(&mut self) {
        let left: Vec<String> = self.wishes.take_resources().into_iter().collect();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for uri in left {
            if self.target.subscribers.remove(&uri) {
                let target = Arc::clone(&self.target);
                runtime.spawn(async move {
                    // A server that has ended has no subscriptions either.
                    let _ = target.ask("resources/unsubscribe", "uri", uri.into()).await;
                });
            }
        }
    }
}

#[expect(deprecated, reason = "log levels and subscriptions of sessions are still passed on")]
impl ServerHandler for RelayServer {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("codexec", env!("CARGO_PKG_VERSION"));
        let title = format!("{} through codexec", self.target.server);
        ServerConfig::new(self.target.capabilities()).with_server_info(name.with_title(title))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let policy = self.target.connection.policy();
        let tools = self.target.link()?.relay.list_tools(&policy.tools).await;
        self.known_list.set(hash_tools(&tools));
        let tools: Vec<Value> = tools.into_iter().map(|tool| tool.definition).collect();
        replace_result(&context, direct::page(&tools, request, &context)?);
        Ok(ListToolsResult::default())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.target.connection.is_read_only() {
            let message = "this token may only read, and tools of servers may change something";
            return Err(ErrorData::invalid_params(message, None));
        }
        let relayed = Relayed::Tool {
            name: request.name.to_string(),
            arguments: request.arguments.clone().unwrap_or_default(),
        };
        let continuation = Continuation {
            responses: request.input_responses.clone(),
            state: request.request_state.clone(),
        };
        self.drive(relayed, continuation, Some(&request), &context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.require::<ListPromptsRequestMethod>(|has| has.prompts.is_some())?;
        self.pass("prompts/list", &request, &context).await?;
        finish_listing(&context);
        Ok(ListPromptsResult::default())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.require::<GetPromptRequestMethod>(|has| has.prompts.is_some())?;
        self.pass("prompts/get", &request, &context).await?;
        Ok(GetPromptResponse::Complete(GetPromptResult::new(Vec::new())))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.require::<ListResourcesRequestMethod>(|has| has.resources.is_some())?;
        self.pass("resources/list", &request, &context).await?;
        finish_listing(&context);
        Ok(ListResourcesResult::default())
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.require::<ListResourceTemplatesRequestMethod>(|has| has.resources.is_some())?;
        self.pass("resources/templates/list", &request, &context).await?;
        finish_listing(&context);
        Ok(ListResourceTemplatesResult::default())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.require::<ReadResourceRequestMethod>(|has| has.resources.is_some())?;
        self.pass("resources/read", &request, &context).await?;
        finish_listing(&context);
        Ok(ReadResourceResponse::Complete(ReadResourceResult::new(Vec::new())))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.require::<CompleteRequestMethod>(|has| has.completions.is_some())?;
        self.pass("completion/complete", &request, &context).await?;
        Ok(CompleteResult::default())
    }

    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.require::<SetLevelRequestMethod>(|has| has.logging.is_some())?;
        let level = serde_json::to_value(request.level).unwrap_or_default();
        let Some(level) = level.as_str().and_then(LogLevel::parse) else { return Ok(()) };
        self.wishes.set_level(level);
        let is_lower = {
            let mut lowest = self.target.log_level.lock().unwrap_or_else(PoisonError::into_inner);
            let is_lower = lowest.is_none_or(|old| level < old);
            if is_lower {
                *lowest = Some(level);
            }
            is_lower
        };
        // A newer server gets the level with each request.
        if is_lower && !self.target.link()?.is_modern {
            self.target.ask("logging/setLevel", "level", level.name().into()).await?;
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.require::<SubscribeRequestMethod>(|has| {
            has.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
        })?;
        self.target.ask("resources/subscribe", "uri", request.uri.as_str().into()).await?;
        if self.wishes.add_resource(&request.uri) {
            self.target.subscribers.add(&request.uri);
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.require::<UnsubscribeRequestMethod>(|has| {
            has.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
        })?;
        self.unsubscribe_from(&request.uri).await
    }

    /// Notifies the client of a session of everything that the server announces from here on.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (Ok(link), Ok(source)) = (self.target.link(), self.tool_list()) else { return };
        let mut changes = ListChangeDetector::new(source, &self.known_list);
        let peer = context.peer.clone();
        tokio::spawn(self.disconnected.clone().run_until_cancelled_owned(async move {
            while changes.next().await && peer.notify_tool_list_changed().await.is_ok() {}
        }));
        let forwarding = notices::forward_to_session(
            link.relay.subscribe_notices(),
            self.wishes.clone(),
            context.peer,
        );
        tokio::spawn(self.disconnected.clone().run_until_cancelled_owned(forwarding));
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    /// Notifies a client without a session, as long as its subscription lasts.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut notices = self.target.link()?.relay.subscribe_notices();
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            self.target.ask("resources/subscribe", "uri", uri.as_str().into()).await?;
            if self.wishes.add_resource(uri) {
                self.target.subscribers.add(uri);
            }
        }
        let mut changes = ListChangeDetector::subscribe(self.tool_list()?).await;
        let wants_tools = context.accepted().tools_list_changed == Some(true);
        loop {
            let is_open = tokio::select! {
                is_changed = changes.next() => {
                    let sink = context.sink();
                    is_changed && (!wants_tools || sink.notify_tool_list_changed().await.is_ok())
                }
                notice = notices::next(&mut notices) => match notice {
                    Some(notice) => {
                        let (accepted, sink) = (context.accepted(), context.sink());
                        notices::send_to_subscription(&notice, accepted, sink).await
                    }
                    None => false,
                },
                () = context.cancelled() => false,
            };
            if !is_open {
                return Ok(());
            }
        }
    }
}
