//! Floods of messages that a server sends by itself.

use super::*;

/// How much our memory may grow meanwhile.
const GROWTH_BYTES: u64 = 64 << 20;

async fn check_flood(tool: &str) {
    let before = rss_bytes();
    check(with_tool(tool), tool, Ok(json!({}))).await;
    let grown = rss_bytes().saturating_sub(before);
    assert!(grown <= GROWTH_BYTES, "{tool}: grew by {grown} bytes");
}

#[tokio::test]
async fn floods_of_notifications_use_bounded_memory() {
    check_flood("notification_flood").await;
    check_flood("progress_flood").await;
}

#[tokio::test]
async fn floods_of_requests_use_bounded_memory() {
    check_flood("request_flood").await;
    check_flood("ping_flood").await;
}

#[tokio::test]
async fn requests_of_a_server_are_answered() {
    let gateway = gateway(&with_tool("ask_us"));
    let answers = call(&gateway, "ask_us", json!({})).await.expect("all are answered");
    assert_eq!(answers["ping"], "result");
    for refused in ["sampling/createMessage", "no/such"] {
        assert!(answers[refused].as_i64().is_some_and(|code| code < 0), "{answers}");
    }
    assert_eq!(call(&gateway, "echo", json!({"n": 1})).await, Ok(json!({"n": 1})));
    gateway.shutdown().await;
}
