//! Answers that violate the protocol.

use super::*;

#[tokio::test]
async fn broken_text_is_repaired() {
    check(with_tool("lone_surrogate"), "lone_surrogate", Ok(json!("cut \u{fffd} here"))).await;
    check(with_tool("bad_utf8"), "bad_utf8", Ok(json!("caf\u{fffd}"))).await;
}

#[tokio::test]
async fn unknown_content_is_passed_on() {
    let block = json!({"type": "hologram", "beam": 1});
    check(with_tool("unknown_content"), "unknown_content", Ok(block)).await;
}

#[tokio::test]
async fn a_slow_drip_arrives_whole() {
    check(with_tool("drip"), "drip", Ok(json!("slow"))).await;
}

#[tokio::test]
async fn junk_between_answers_is_skipped() {
    check(with_tool("junk_then_echo"), "junk_then_echo", Ok(json!({}))).await;
}

#[tokio::test]
async fn tool_errors_reach_the_caller() {
    check(with_tool("fails"), "fails", Err("s.fails: no such row")).await;
    check(with_tool("refuses"), "refuses", Err("server \"s\": bad id")).await;
}

#[tokio::test]
async fn deep_nesting_fails_its_call() {
    let why = "server \"s\": the server's answer is not valid JSON (recursion limit exceeded at \
               line 1 column 169)";
    check(with_tool("deep"), "deep", Err(why)).await;
}

/// The server returns the id as a string, which matches no request.
#[tokio::test]
async fn ids_are_not_matched_loosely() {
    let why =
        "server \"s\": the server's answer has the request id as a string, which is invalid MCP";
    check(with_tool("string_id"), "string_id", Err(why)).await;
}

#[tokio::test]
async fn long_lines_fail_their_call_and_cost_no_memory() {
    let before = rss_bytes();
    let over = "server \"s\": the server's answer is over the limit of 10 MiB; ask for less";
    check(with_tool("big_result"), "big_result", Err(over)).await;
    check(with_tool("nameless_line"), "nameless_line", Err(over)).await;
    // This line never ends: the call fails, and the rest of the output is lost.
    let gateway = gateway(&with_tool("long_line"));
    let actual = call(&gateway, "long_line", json!({})).await.expect_err("too long");
    assert_eq!((actual.code, actual.message.as_str()), (CallCode::UpstreamError, over));
    gateway.shutdown().await;
    let grown = rss_bytes().saturating_sub(before);
    assert!(grown <= 64 << 20, "grew by {grown} bytes");
}

#[tokio::test]
async fn half_a_line_fails_its_call() {
    let why = "server \"s\": the server's answer is not valid JSON (EOF while parsing a string at \
               line 1 column 49)";
    check(with_tool("half_line"), "half_line", Err(why)).await;
    let why = "server \"s\": it ended (exit status: 6)";
    check(with_tool("half_line_and_die"), "half_line_and_die", Err(why)).await;
}

#[tokio::test]
async fn unmatched_answers_are_dropped() {
    check(with_tool("twice"), "twice", Ok(json!("first"))).await;
    check(with_tool("for_another"), "for_another", Ok(json!({}))).await;
}
