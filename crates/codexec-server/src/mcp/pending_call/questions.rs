//! Questions of servers to the client: elicitation, and through a relay sampling and roots.

use std::time::Duration;

use codexec_gateway::{ElicitationSupport, Question, QuestionSupport, RpcError};
use rmcp::RoleServer;
use rmcp::model::{CustomRequest, ErrorCode, RequestId, ServerRequest};
use rmcp::service::{OriginatingRequestId, Peer, PeerRequestOptions, RequestContext, ServiceError};
use serde_json::Value;

/// A little longer than the asking server waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(660);

/// Returns the questions that the client supports.
pub(in crate::mcp) fn read_support(context: &RequestContext<RoleServer>) -> QuestionSupport {
    let Some(declared) = context.client_capabilities() else { return QuestionSupport::default() };
    let elicitation = declared.elicitation;
    let urls = elicitation.as_ref().is_some_and(|elicitation| elicitation.url.is_some());
    // Without either field, elicitation means forms: that was the only mode of earlier versions.
    let forms = elicitation.is_some_and(|elicitation| elicitation.form.is_some() || !urls);
    let (sampling, roots) = (declared.sampling.is_some(), declared.roots.is_some());
    QuestionSupport { elicitation: ElicitationSupport { forms, urls }, sampling, roots }
}

/// Asks with a request of codexec's own, as for clients with a handshake.
pub(super) async fn ask(peer: Peer<RoleServer>, during: RequestId, mut question: Question) {
    let params = Value::Object(question.params.clone());
    let mut request = CustomRequest::new(question.kind.method(), Some(params));
    // Over HTTP, it goes to the stream of the request during which the server asks.
    request.extensions.insert(OriginatingRequestId(during));
    let options = PeerRequestOptions::with_timeout(ANSWER_TIMEOUT);
    let sent = peer.send_request_with_option(ServerRequest::CustomRequest(request), options).await;
    let Ok(mut handle) = sent else { return question.fail(unanswered()) };
    let answer = tokio::select! {
        answer = &mut handle.rx => answer,
        () = question.wait_abandoned() => {
            // If this fails, the client has disconnected.
            let _ = handle.cancel(Some("the server no longer waits".to_owned())).await;
            return;
        }
    };
    match answer {
        Ok(Ok(result)) => question.answer(serde_json::to_value(result).unwrap_or_default()),
        Ok(Err(ServiceError::McpError(error))) => {
            let (code, message) = (error.code.0, error.message.into_owned());
            question.fail(RpcError { code, message, data: error.data });
        }
        // The client declared it, but cannot do it.
        Ok(Err(_)) | Err(_) => question.fail(unanswered()),
    }
}

pub(super) fn unanswered() -> RpcError {
    RpcError::new(ErrorCode::INTERNAL_ERROR.0, "the client did not answer")
}
