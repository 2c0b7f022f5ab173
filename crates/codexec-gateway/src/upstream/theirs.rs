//! Requests and notifications that a server sends by itself. Most are answered or dropped here, so
//! that a flood of them costs nothing further in.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{connection::News, progress::Progress};

/// The limit on concurrent requests of a server.
const REQUESTS: usize = 16;
/// The limit on forwarded notifications per read.
const NOTICES: usize = 16;
/// The limit on replies waiting to be sent.
const REPLIES: usize = 64;
/// The error code for requests over the limit.
const TOO_MANY: i32 = -32_000;

/// The notifications that are forwarded to rmcp. Others are dropped before anything logs them.
const HEARD: [&str; 1] = ["notifications/cancelled"];

#[derive(Default)]
pub(super) struct Theirs {
    news: News,
    /// Requests that rmcp is handling, by the text of their id.
    under_way: HashSet<String>,
    notices: usize,
    replies: Vec<Value>,
}

/// How a message was handled.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The message must be forwarded to rmcp.
    PassOn,
    /// The message needs no further handling.
    Done,
}

impl Theirs {
    pub(super) fn new(news: News) -> Theirs {
        Theirs { news, ..Theirs::default() }
    }

    /// Resets the limit on forwarded notifications, after each read.
    pub(super) fn refresh(&mut self) {
        self.notices = 0;
    }

    pub(super) fn hear(&mut self, method: &str, message: &Map<String, Value>) -> Fate {
        match (message.get("id"), method) {
            (Some(id), "ping") => self.reply(json!({"jsonrpc": "2.0", "id": id, "result": {}})),
            (Some(id), _) if self.under_way.len() >= REQUESTS => {
                let error = json!({"code": TOO_MANY, "message": "too many requests at a time"});
                self.reply(json!({"jsonrpc": "2.0", "id": id, "error": error}))
            }
            (Some(id), _) => {
                self.under_way.insert(id.to_string());
                Fate::PassOn
            }
            (None, "notifications/tools/list_changed") => {
                self.news.changes.heard();
                Fate::Done
            }
            (None, "notifications/progress") => {
                if let Some((token, progress)) = message.get("params").and_then(Progress::read) {
                    self.news.progress.tell(token, progress);
                }
                Fate::Done
            }
            (None, _) if HEARD.contains(&method) && self.notices < NOTICES => {
                self.notices += 1;
                Fate::PassOn
            }
            (None, _) => Fate::Done,
        }
    }

    /// Marks a request of the server as answered by rmcp.
    pub(super) fn answered(&mut self, id: &str) {
        self.under_way.remove(id);
    }

    /// Takes the replies that must be sent to the server.
    pub(super) fn replies(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.replies)
    }

    /// Queues a reply. A server that sends more requests than it reads replies gets none.
    fn reply(&mut self, reply: Value) -> Fate {
        if self.replies.len() < REPLIES {
            self.replies.push(reply);
        }
        Fate::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(theirs: &mut Theirs, message: &Value) -> Fate {
        let message = message.as_object().expect("an object");
        let method = message["method"].as_str().expect("a method");
        theirs.hear(method, message)
    }

    #[test]
    fn a_ping_is_answered_at_once() {
        let mut theirs = Theirs::default();
        for id in [json!(1), json!("one")] {
            let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
            assert_eq!(hear(&mut theirs, &ping), Fate::Done);
            assert_eq!(theirs.replies(), [json!({"jsonrpc": "2.0", "id": id, "result": {}})]);
        }
    }

    #[test]
    fn so_many_requests_are_worked_on_and_the_rest_refused() {
        let mut theirs = Theirs::default();
        let request = |id: usize| json!({"id": id, "method": "sampling/createMessage"});
        for id in 0..REQUESTS {
            assert_eq!(hear(&mut theirs, &request(id)), Fate::PassOn);
        }
        for id in 0..1_000 {
            assert_eq!(hear(&mut theirs, &request(id)), Fate::Done);
        }
        let replies = theirs.replies();
        assert_eq!(replies.len(), REPLIES);
        assert_eq!(replies[7]["error"]["code"], TOO_MANY);
        theirs.answered("3");
        assert_eq!(hear(&mut theirs, &request(5_000)), Fate::PassOn);
    }

    #[test]
    fn a_flood_of_notifications_is_not_passed_on() {
        let mut theirs = Theirs::default();
        let mut passed = |method: &str| {
            let message = json!({"method": method, "params": {"requestId": 1}});
            theirs.refresh();
            (0..100).filter(|_| hear(&mut theirs, &message) == Fate::PassOn).count()
        };
        assert_eq!(passed("notifications/cancelled"), NOTICES);
        assert_eq!(passed("notifications/tools/list_changed"), 0);
        assert_eq!(passed("notifications/progress"), 0);
        assert_eq!(passed("notifications/message"), 0);
        assert_eq!(passed("notifications/cancelled"), NOTICES);
    }
}
