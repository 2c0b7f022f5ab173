//! Questions to the client's user (elicitation).

use std::time::Duration;

use codexec_gateway::{ElicitationSupport, Question};
use rmcp::RoleServer;
use rmcp::model::{CustomRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext};
use serde_json::{Value, json};

/// A little longer than the asking server waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(660);

/// Returns what the client can show; `None` if it does not support elicitation.
pub(super) fn can_show(context: &RequestContext<RoleServer>) -> Option<ElicitationSupport> {
    let elicitation = context.client_capabilities()?.elicitation?;
    // Without either field, elicitation means forms: that was the only mode of earlier versions.
    let forms = elicitation.form.is_some() || elicitation.url.is_none();
    Some(ElicitationSupport { forms, urls: elicitation.url.is_some() })
}

/// Asks with a request of codexec's own, as for clients with a handshake.
pub(super) async fn ask(peer: Peer<RoleServer>, mut question: Question) {
    let params = Value::Object(question.params.clone());
    let request = CustomRequest::new("elicitation/create", Some(params));
    let options = PeerRequestOptions::with_timeout(ANSWER_TIMEOUT);
    let sent = peer.send_request_with_option(ServerRequest::CustomRequest(request), options).await;
    let Ok(mut handle) = sent else { return question.answer(json!({ "action": "decline" })) };
    let answer = tokio::select! {
        answer = &mut handle.rx => answer,
        () = question.wait_abandoned() => {
            // If this fails, the client has disconnected.
            let _ = handle.cancel(Some("the server no longer waits".to_owned())).await;
            return;
        }
    };
    let answer = match answer {
        Ok(Ok(result)) => serde_json::to_value(result).unwrap_or_default(),
        // The client declared elicitation, but cannot do it.
        Ok(Err(_)) | Err(_) => json!({ "action": "cancel" }),
    };
    question.answer(answer);
}
