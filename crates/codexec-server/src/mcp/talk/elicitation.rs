//! A question to the client's human.

use std::time::Duration;

use codexec_gateway::{CanShow, Question};
use rmcp::RoleServer;
use rmcp::model::{CustomRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext};
use serde_json::{Value, json};

/// A little longer than whoever asked waits.
const LONGEST: Duration = Duration::from_secs(660);

/// What the client can show; `None` when it cannot be asked anything.
pub(super) fn can_show(context: &RequestContext<RoleServer>) -> Option<CanShow> {
    let elicitation = context.client_capabilities()?.elicitation?;
    // Before there were two modes, it meant forms.
    let forms = elicitation.form.is_some() || elicitation.url.is_none();
    Some(CanShow { forms, urls: elicitation.url.is_some() })
}

/// Asks by a request of our own, as clients with a handshake are asked.
pub(super) async fn ask(peer: Peer<RoleServer>, mut question: Question) {
    let params = Value::Object(question.params.clone());
    let request = CustomRequest::new("elicitation/create", Some(params));
    let options = PeerRequestOptions::with_timeout(LONGEST);
    let sent = peer.send_request_with_option(ServerRequest::CustomRequest(request), options).await;
    let Ok(mut handle) = sent else { return question.answer(json!({ "action": "decline" })) };
    let answer = tokio::select! {
        answer = &mut handle.rx => answer,
        () = question.abandoned() => {
            // A client that cannot be told has left.
            let _ = handle.cancel(Some("the server no longer waits".to_owned())).await;
            return;
        }
    };
    let answer = match answer {
        Ok(Ok(result)) => serde_json::to_value(result).unwrap_or_default(),
        // It said that it can be asked, and cannot.
        Ok(Err(_)) | Err(_) => json!({ "action": "cancel" }),
    };
    question.answer(answer);
}
