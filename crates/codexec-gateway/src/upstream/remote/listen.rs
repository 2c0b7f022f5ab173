//! Notifications of a server, such as changed tools. Best effort: a failure here never fails the
//! server.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    exchange::{follow, is_stream},
    headers::headers,
    link::Link,
    outgoing::Outgoing,
};
use crate::upstream::UpstreamError;

/// How often in a row a subscription may end early.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// A subscription that lasted this long resets the count.
const LASTING: Duration = Duration::from_secs(30);

/// Reads the notification stream of a server before 2026-07-28. Most servers have none.
pub(super) async fn to_stream(link: Arc<Link>) {
    let listened = async {
        let response = link.get(None).await?;
        match response.status().is_success() && is_stream(&response) {
            true => follow(&link, None, response).await,
            false => Ok(()),
        }
    };
    until_gone(&link, listened).await;
}

/// Subscribes to changes of a newer server. `discover` carries our client metadata.
pub(super) async fn to_changes(link: Arc<Link>, discover: Outgoing) {
    let listened = async {
        let mut tries = 0;
        while tries < TRIES {
            let begun = Instant::now();
            let response = link.post(&subscription(&discover, tries)).await?;
            if !response.status().is_success() || !is_stream(&response) {
                return Ok(());
            }
            // A subscription that ends is simply retried.
            let _ = follow(&link, Some(&subscription(&discover, tries)), response).await;
            tries = if begun.elapsed() > LASTING { 1 } else { tries + 1 };
            tokio::time::sleep(PAUSE * tries).await;
        }
        Ok(())
    };
    until_gone(&link, listened).await;
}

async fn until_gone(link: &Link, listened: impl Future<Output = Result<(), UpstreamError>>) {
    tokio::select! {
        listened = listened => {
            if let Err(error) = listened {
                tracing::debug!(%error, "a server is no longer listened to");
            }
        }
        () = link.gone.cancelled() => {}
    }
}

fn subscription(discover: &Outgoing, number: u32) -> Outgoing {
    let discover: Value = serde_json::from_slice(&discover.body).unwrap_or_default();
    let version = super::headers::version_of(&discover).unwrap_or_default().to_owned();
    let meta = discover.pointer("/params/_meta").cloned().unwrap_or_default();
    // Our other ids are numbers.
    let message = json!({
        "jsonrpc": "2.0",
        "id": format!("listen-{number}"),
        "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": true}, "_meta": meta},
    });
    Outgoing {
        id: None,
        method: "subscriptions/listen".to_owned(),
        headers: headers(&message, &version, &[]),
        body: serde_json::to_vec(&message).unwrap_or_default(),
        is_modern: true,
    }
}
