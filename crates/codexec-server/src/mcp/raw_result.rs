//! Bypasses the SDK's types for results of upstreams, because they do not know all fields.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientNotification, ClientRequest, CustomResult, Extensions, ProtocolVersion, ServerConfig,
    ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, Service};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

/// A server as the SDK's loop sees it. Every request passes the SDK's own checks.
pub(super) struct RawServer<H>(pub(super) H);

/// A raw result that a handler sets, to be sent instead of the one it returns.
#[derive(Clone, Default)]
struct RawResult(Arc<Mutex<Option<Value>>>);

/// Sets the raw result of this request. Only `resultType` is adapted to the protocol version.
pub(super) fn replace_result(context: &RequestContext<RoleServer>, mut result: Value) {
    if let Some(object) = result.as_object_mut() {
        match (is_modern(context), object.contains_key("resultType")) {
            (true, false) => drop(object.insert("resultType".to_owned(), "complete".into())),
            (false, true) => drop(object.remove("resultType")),
            (true, true) | (false, false) => {}
        }
    }
    set_raw_result(&context.extensions, result);
}

/// Adapts the caching hints of a raw result to the protocol version. A client's list depends on its
/// token, so nobody else may get it from a cache.
pub(super) fn finish_listing(context: &RequestContext<RoleServer>) {
    let Some(RawResult(slot)) = context.extensions.get() else { return };
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(result) = slot.as_mut().and_then(Value::as_object_mut) else { return };
    let is_complete = result.get("resultType").is_none_or(|kind| kind == "complete");
    let ttl = result.remove("ttlMs").filter(Value::is_u64);
    result.remove("cacheScope");
    if is_modern(context) && is_complete {
        result.insert("ttlMs".to_owned(), ttl.unwrap_or_else(|| 0.into()));
        result.insert("cacheScope".to_owned(), "private".into());
    }
}

/// True if the request is of a protocol version without a handshake.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    // ISO dates can be compared as strings.
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn set_raw_result(extensions: &Extensions, result: Value) {
    if let Some(RawResult(slot)) = extensions.get() {
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }
}

impl<H: ServerHandler> Service<RoleServer> for RawServer<H> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let raw_result = RawResult::default();
        context.extensions.insert(raw_result.clone());
        let result = Service::handle_request(&self.0, request, context).await?;
        let raw = raw_result.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(raw.map_or(result, |raw| ServerResult::CustomResult(CustomResult(raw))))
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Service::handle_notification(&self.0, notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        Service::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Service::supported_protocol_versions(&self.0)
    }
}
