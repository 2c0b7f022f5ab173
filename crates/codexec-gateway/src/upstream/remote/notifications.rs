//! Notifications of a server, such as changed tools. Best effort: a failure here never fails the
//! server.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    exchange::{is_stream, read_event_stream},
    headers::build_headers,
    link::RemoteLink,
    outgoing::OutgoingMessage,
};
use crate::upstream::UpstreamError;

/// How often in a row a subscription may end early.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// A subscription that lasted this long resets the count.
const LASTING: Duration = Duration::from_secs(30);

/// Reads the notification stream of a server before 2026-07-28. Most servers have none.
pub(super) async fn read_notifications(link: Arc<RemoteLink>) {
    let listening = async {
        let response = link.get(None).await?;
        match response.status().is_success() && is_stream(&response) {
            true => read_event_stream(&link, None, response).await,
            false => Ok(()),
        }
    };
    run_until_closed(&link, listening).await;
}

/// Subscribes to these changes of a newer server. `discover` carries our client metadata.
pub(super) async fn subscribe_to_changes(
    link: Arc<RemoteLink>,
    discover: OutgoingMessage,
    filter: Value,
) {
    let listening = async {
        let mut tries = 0;
        while tries < TRIES {
            let begun = Instant::now();
            let message = subscription_message(&discover, &filter, tries);
            let response = link.post(&message).await?;
            if !response.status().is_success() || !is_stream(&response) {
                return Ok(());
            }
            // A subscription that ends is simply retried.
            let _ = read_event_stream(&link, Some(&message), response).await;
            tries = if begun.elapsed() > LASTING { 1 } else { tries + 1 };
            tokio::time::sleep(PAUSE * tries).await;
        }
        Ok(())
    };
    run_until_closed(&link, listening).await;
}

async fn run_until_closed(
    link: &RemoteLink,
    listening: impl Future<Output = Result<(), UpstreamError>>,
) {
    tokio::select! {
        listening = listening => {
            if let Err(error) = listening {
                tracing::debug!(%error, "stopped listening for notifications");
            }
        }
        () = link.closed.cancelled() => {}
    }
}

fn subscription_message(
    discover: &OutgoingMessage,
    filter: &Value,
    number: u32,
) -> OutgoingMessage {
    let discover: Value = serde_json::from_slice(&discover.body).unwrap_or_default();
    let version = super::headers::protocol_version(&discover).unwrap_or_default().to_owned();
    let meta = discover.pointer("/params/_meta").cloned().unwrap_or_default();
    // Our other ids are numbers.
    let message = json!({
        "jsonrpc": "2.0",
        "id": format!("listen-{number}"),
        "method": "subscriptions/listen",
        "params": {"notifications": filter, "_meta": meta},
    });
    OutgoingMessage {
        id: None,
        method: "subscriptions/listen".to_owned(),
        headers: build_headers(&message, &version, &[]),
        body: serde_json::to_vec(&message).unwrap_or_default(),
        is_modern: true,
    }
}
