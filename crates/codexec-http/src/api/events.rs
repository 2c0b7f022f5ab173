//! A stream of everything that changes, as far as the client may see it.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use codexec_server::{App, Connection, ExecutionChange};
use codexec_store::CoarseStatus;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Interval;

use super::execution_view as view;
use super::{Answer, ApiRequest, sse};

/// How often servers, sessions and approvals are compared with what was sent.
const COMPARE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn stream(request: ApiRequest<'_>) -> Answer {
    let feed = Feed::new(Arc::clone(request.app()), Arc::clone(request.connection()));
    let events = stream::unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((event, feed))
    });
    Ok(sse::respond(events, (), request.stop.clone()))
}

/// The changes that one client is told.
struct Feed {
    app: Arc<App>,
    connection: Arc<Connection>,
    executions: broadcast::Receiver<ExecutionChange>,
    compare: Interval,
    /// By the event's name and the id of what changed.
    known: BTreeMap<(&'static str, String), Value>,
    waiting: VecDeque<sse::Event>,
}

impl Feed {
    fn new(app: Arc<App>, connection: Arc<Connection>) -> Feed {
        let mut compare = tokio::time::interval(COMPARE_INTERVAL);
        compare.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let executions = app.running.subscribe();
        let mut feed = Feed {
            app,
            connection,
            executions,
            compare,
            known: BTreeMap::new(),
            waiting: VecDeque::new(),
        };
        feed.known = feed.observe();
        // The first event says that the stream is complete from here on.
        feed.waiting.push_back(("ready", json!({})));
        feed
    }

    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            tokio::select! {
                change = self.executions.recv() => match change {
                    Ok(change) => self.add_execution(&change),
                    Err(RecvError::Lagged(count)) => {
                        self.waiting.push_back(("missed", json!({"events": count})));
                    }
                    Err(RecvError::Closed) => return None,
                },
                _ = self.compare.tick() => self.compare(),
            }
        }
    }

    /// THREAT[HTTP-9]: executions of others are left out.
    fn add_execution(&mut self, change: &ExecutionChange) {
        let identity = change.execution.principal.identity();
        if !self.connection.read_scope().includes(identity) {
            return;
        }
        let mut about = view::running(&change.execution);
        let name = match change.ended {
            None => "execution.started",
            Some(status) => {
                if let Some(fields) = about.as_object_mut() {
                    fields.insert("status".to_owned(), CoarseStatus::name(status).into());
                }
                "execution.finished"
            }
        };
        self.waiting.push_back((name, about));
    }

    /// Adds an event for everything that is new, different or gone.
    fn compare(&mut self) {
        let now = self.observe();
        let gone = self.known.keys().filter(|key| !now.contains_key(*key)).cloned();
        let gone: Vec<_> = gone.collect();
        for (key, value) in &now {
            if self.known.get(key) != Some(value) {
                self.waiting.push_back((key.0, value.clone()));
            }
        }
        for (name, id) in gone {
            self.waiting.push_back((name, json!({"id": id, "is_gone": true})));
        }
        self.known = now;
    }

    fn observe(&self) -> BTreeMap<(&'static str, String), Value> {
        let mut known = BTreeMap::new();
        for server in self.app.server_health(&self.connection) {
            let about = json!({
                "id": server.name,
                "state": server.state_name(),
                "breaker": server.breaker.name(),
                "tools": server.tools,
                "tools_held": server.held,
                "restarts": server.counts.restarts,
            });
            if self.connection.sees_settings() && server.held > 0 {
                let about = json!({"id": server.name, "tools_held": server.held});
                known.insert(("approval.changed", server.name.clone()), about);
            }
            known.insert(("server.changed", server.name), about);
        }
        for session in self.app.sessions.list_in(&self.connection.read_scope()) {
            let id = session.id.as_str().to_owned();
            let about = json!({"id": id, "state": "open", "executions": session.executions});
            known.insert(("session.changed", id), about);
        }
        if self.connection.sees_settings() {
            for name in self.app.live_settings.pending_servers() {
                let about = json!({"id": name, "kind": "server"});
                known.insert(("approval.changed", format!("entry:{name}")), about);
            }
        }
        known
    }
}
