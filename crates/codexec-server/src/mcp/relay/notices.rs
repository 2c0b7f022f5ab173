//! Notifications of the server, for the clients that want them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use codexec_gateway::ServerNotice;
use rmcp::RoleServer;
use rmcp::model::{CustomNotification, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, SubscriptionSink};
use serde_json::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

const MESSAGE: &str = "notifications/message";
const RESOURCE_UPDATED: &str = "notifications/resources/updated";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";

/// The number of clients that have subscribed to each resource.
#[derive(Default)]
pub(super) struct Subscribers(Mutex<HashMap<String, usize>>);

impl Subscribers {
    pub(super) fn add(&self, uri: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(uri.to_owned()).or_default() += 1;
    }

    /// Returns true if nobody has subscribed any more.
    pub(super) fn remove(&self, uri: &str) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = counts.get_mut(uri) else { return false };
        *count = count.saturating_sub(1);
        let is_last = *count == 0;
        if is_last {
            counts.remove(uri);
        }
        is_last
    }
}

/// What the client of a session wants to know.
#[derive(Clone, Default)]
pub(super) struct Wishes(Arc<Mutex<WishedNotices>>);

#[derive(Default)]
struct WishedNotices {
    level: Option<LogLevel>,
    resources: HashSet<String>,
}

impl Wishes {
    pub(super) fn set_level(&self, level: LogLevel) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).level = Some(level);
    }

    pub(super) fn level(&self) -> Option<LogLevel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).level
    }

    /// Returns false if the client has subscribed before.
    pub(super) fn add_resource(&self, uri: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).resources.insert(uri.to_owned())
    }

    /// Returns false if the client has not subscribed.
    pub(super) fn remove_resource(&self, uri: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).resources.remove(uri)
    }

    /// Takes all subscriptions of a client that has disconnected.
    pub(super) fn take_resources(&self) -> HashSet<String> {
        let mut wished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut wished.resources)
    }

    fn includes(&self, notice: &ServerNotice) -> bool {
        let wished = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match notice.method {
            MESSAGE => is_severe_enough(notice, wished.level),
            RESOURCE_UPDATED => uri(notice).is_some_and(|uri| wished.resources.contains(uri)),
            _ => true,
        }
    }
}

/// Passes on notifications to the client of a session until it disconnects.
pub(super) async fn forward_to_session(
    mut notices: Receiver<ServerNotice>,
    wishes: Wishes,
    peer: Peer<RoleServer>,
) {
    while let Some(notice) = next(&mut notices).await {
        if wishes.includes(&notice) && !send(&peer, &notice).await {
            return;
        }
    }
}

/// Passes on log messages to a client without a session, while one of its requests runs.
pub(super) struct LogForwarding {
    is_over: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

impl LogForwarding {
    pub(super) fn start(
        mut notices: Receiver<ServerNotice>,
        level: LogLevel,
        peer: Peer<RoleServer>,
    ) -> LogForwarding {
        let is_over = CancellationToken::new();
        let token = is_over.clone();
        let running = tokio::spawn(async move {
            loop {
                let notice = tokio::select! {
                    // Messages that came before the end are still sent.
                    biased;
                    notice = next(&mut notices) => notice,
                    () = token.cancelled() => None,
                };
                let Some(notice) = notice else { return };
                let is_wanted = notice.method == MESSAGE && is_severe_enough(&notice, Some(level));
                if is_wanted && !send(&peer, &notice).await {
                    return;
                }
            }
        });
        LogForwarding { is_over, running }
    }

    /// Waits until the last message was sent.
    pub(super) async fn finish(self) {
        self.is_over.cancel();
        let _ = self.running.await;
    }
}

/// Passes on one notification to a subscription. Returns false if the subscription has ended.
pub(super) async fn send_to_subscription(
    notice: &ServerNotice,
    accepted: &SubscriptionFilter,
    sink: &SubscriptionSink,
) -> bool {
    let is_wanted = |flag: Option<bool>| flag == Some(true);
    let sent = match notice.method {
        PROMPTS_CHANGED if is_wanted(accepted.prompts_list_changed) => {
            sink.notify_prompt_list_changed().await
        }
        RESOURCES_CHANGED if is_wanted(accepted.resources_list_changed) => {
            sink.notify_resource_list_changed().await
        }
        RESOURCE_UPDATED => {
            let wanted = accepted.resource_subscriptions.iter().flatten();
            let mut wanted = wanted.filter(|wanted| uri(notice) == Some(wanted.as_str()));
            match wanted.next() {
                Some(uri) => sink.notify_resource_updated(uri.clone()).await,
                None => Ok(()),
            }
        }
        _ => Ok(()),
    };
    sent.is_ok()
}

/// Returns the next notification, or `None` at the end. A slow client misses some.
pub(super) async fn next(notices: &mut Receiver<ServerNotice>) -> Option<ServerNotice> {
    loop {
        match notices.recv().await {
            Ok(notice) => return Some(notice),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

async fn send(peer: &Peer<RoleServer>, notice: &ServerNotice) -> bool {
    let params = (!notice.params.is_null()).then(|| (*notice.params).clone());
    let notification = CustomNotification::new(notice.method, params);
    peer.send_notification(ServerNotification::CustomNotification(notification)).await.is_ok()
}

/// Returns true if a log message has at least this level. Without a level, all messages count.
fn is_severe_enough(notice: &ServerNotice, least: Option<LogLevel>) -> bool {
    let level = notice.params.get("level").and_then(Value::as_str).and_then(LogLevel::parse);
    level.is_some_and(|level| least.is_none_or(|least| level >= least))
}

/// The severity of a log message, as MCP names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogLevel(usize);

const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl LogLevel {
    pub(super) fn parse(name: &str) -> Option<LogLevel> {
        LEVELS.iter().position(|level| *level == name).map(LogLevel)
    }

    pub(super) fn name(self) -> &'static str {
        LEVELS.get(self.0).copied().unwrap_or_default()
    }
}

fn uri(notice: &ServerNotice) -> Option<&str> {
    notice.params.get("uri").and_then(Value::as_str)
}
