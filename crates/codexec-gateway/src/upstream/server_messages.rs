//! Requests and notifications that a server sends by itself. Most are answered or dropped here, so
//! that a flood of them costs nothing further in.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{progress::CallProgress, server_events::ServerEvents};

/// The limit on concurrent requests of a server.
const REQUESTS: usize = 16;
/// The limit on forwarded notifications per read.
const NOTICES: usize = 16;
/// The limit on replies waiting to be sent.
const REPLIES: usize = 64;
/// The error code for requests over the limit.
const TOO_MANY: i32 = -32_000;

/// The notifications that are forwarded to rmcp. Others are dropped before anything logs them.
const FORWARDED: [&str; 1] = ["notifications/cancelled"];

#[derive(Default)]
pub(super) struct ServerMessages {
    server_events: ServerEvents,
    /// Requests that rmcp is handling, by the text of their id.
    in_progress: HashSet<String>,
    notices: usize,
    replies: Vec<Value>,
}

/// How a message was handled.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Handling {
    /// The message must be forwarded to rmcp.
    Forward,
    /// The message needs no further handling.
    Handled,
}

impl ServerMessages {
    pub(super) fn new(server_events: ServerEvents) -> ServerMessages {
        ServerMessages { server_events, ..ServerMessages::default() }
    }

    /// Resets the limit on forwarded notifications, after each read.
    pub(super) fn reset_limits(&mut self) {
        self.notices = 0;
    }

    pub(super) fn handle(&mut self, method: &str, message: &Map<String, Value>) -> Handling {
        match (message.get("id"), method) {
            (Some(id), "ping") => self.reply(json!({"jsonrpc": "2.0", "id": id, "result": {}})),
            (Some(id), _) if self.in_progress.len() >= REQUESTS => {
                let error = json!({"code": TOO_MANY, "message": "too many requests at a time"});
                self.reply(json!({"jsonrpc": "2.0", "id": id, "error": error}))
            }
            (Some(id), _) => {
                self.in_progress.insert(id.to_string());
                Handling::Forward
            }
            (None, "notifications/tools/list_changed") => {
                self.server_events.changes.record();
                Handling::Handled
            }
            (None, "notifications/progress") => {
                if let Some((token, progress)) = message.get("params").and_then(CallProgress::read)
                {
                    self.server_events.progress.notify(token, progress);
                }
                Handling::Handled
            }
            (None, _) if FORWARDED.contains(&method) && self.notices < NOTICES => {
                self.notices += 1;
                Handling::Forward
            }
            (None, _) => {
                self.server_events.relay(method, message.get("params"));
                Handling::Handled
            }
        }
    }

    /// Marks a request of the server as answered by rmcp.
    pub(super) fn mark_answered(&mut self, id: &str) {
        self.in_progress.remove(id);
    }

    /// Takes the replies that must be sent to the server.
    pub(super) fn take_replies(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.replies)
    }

    /// Queues a reply. A server that sends more requests than it reads replies gets none.
    fn reply(&mut self, reply: Value) -> Handling {
        if self.replies.len() < REPLIES {
            self.replies.push(reply);
        }
        Handling::Handled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(messages: &mut ServerMessages, message: &Value) -> Handling {
        let message = message.as_object().expect("an object");
        let method = message["method"].as_str().expect("a method");
        messages.handle(method, message)
    }

    #[test]
    fn a_ping_is_answered_at_once() {
        let mut server_messages = ServerMessages::default();
        for id in [json!(1), json!("one")] {
            let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
            assert_eq!(handle(&mut server_messages, &ping), Handling::Handled);
            assert_eq!(
                server_messages.take_replies(),
                [json!({"jsonrpc": "2.0", "id": id, "result": {}})]
            );
        }
    }

    #[test]
    fn excess_requests_are_refused() {
        let mut server_messages = ServerMessages::default();
        let request = |id: usize| json!({"id": id, "method": "sampling/createMessage"});
        for id in 0..REQUESTS {
            assert_eq!(handle(&mut server_messages, &request(id)), Handling::Forward);
        }
        for id in 0..1_000 {
            assert_eq!(handle(&mut server_messages, &request(id)), Handling::Handled);
        }
        let replies = server_messages.take_replies();
        assert_eq!(replies.len(), REPLIES);
        assert_eq!(replies[7]["error"]["code"], TOO_MANY);
        server_messages.mark_answered("3");
        assert_eq!(handle(&mut server_messages, &request(5_000)), Handling::Forward);
    }

    #[test]
    fn floods_of_notifications_are_not_forwarded() {
        let mut server_messages = ServerMessages::default();
        let mut passed = |method: &str| {
            let message = json!({"method": method, "params": {"requestId": 1}});
            server_messages.reset_limits();
            (0..100).filter(|_| handle(&mut server_messages, &message) == Handling::Forward).count()
        };
        assert_eq!(passed("notifications/cancelled"), NOTICES);
        assert_eq!(passed("notifications/tools/list_changed"), 0);
        assert_eq!(passed("notifications/progress"), 0);
        assert_eq!(passed("notifications/message"), 0);
        assert_eq!(passed("notifications/cancelled"), NOTICES);
    }
}
