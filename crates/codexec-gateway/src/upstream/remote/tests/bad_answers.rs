use super::*;

/// Calls one tool and then another: the first must not affect the second.
async fn check(plan: &Value, tool: &str, expected: Result<Value, &str>) {
    let server = ScriptedHttpServer::start(plan);
    let gateway = gateway(remote(&server.url()));
    let actual = call(&gateway, tool).await;
    assert_eq!(actual, expected.map_err(str::to_owned), "{tool} {plan}");
    let echoed = call_with(&gateway, "echo", json!({"n": 1})).await;
    assert_eq!(echoed, Ok(json!({"n": 1})), "{tool} {plan}");
    gateway.shutdown().await;
}

async fn check_both(tool: &str, expected: Result<Value, &str>) {
    check(&json!({"era": "modern"}), tool, expected.clone()).await;
    check(&json!({"era": "legacy"}), tool, expected).await;
}

#[tokio::test]
async fn broken_text_is_repaired() {
    check_both("lone_surrogate", Ok(json!("cut \u{fffd} here"))).await;
    check_both("bad_utf8", Ok(json!("caf\u{fffd}"))).await;
}

#[tokio::test]
async fn unknown_content_is_passed_on() {
    check_both("odd_content", Ok(json!({"type": "hologram", "beam": 1}))).await;
    check_both("junk_first", Ok(json!("after junk"))).await;
}

#[tokio::test]
async fn rem_1_endless_answers_are_cut_off() {
    let too_long =
        Err("server \"s\": the server's answer is over the limit of 10 MiB; ask for less");
    check_both("big_json", too_long.clone()).await;
    check_both("big_event", too_long.clone()).await;
    check_both("endless", too_long).await;
}

#[tokio::test]
async fn incomplete_answers_fail_only_their_call() {
    check_both("drop", Err("server \"s\": the request failed: the connection broke")).await;
    let cut = Err("server \"s\": the request failed: its response ended before it was complete");
    check_both("cut", cut).await;
}

#[tokio::test]
async fn answers_that_are_not_mcp_are_reported() {
    let html = Err("server \"s\": it answered with text/html instead of an MCP result");
    check_both("html", html).await;
    let id = Err(
        "server \"s\": the server's answer has the request id as a string, which is invalid MCP",
    );
    check_both("string_id", id).await;
    let broken =
        Err("server \"s\": it answered with HTTP 500 Internal Server Error: out of cheese[2J");
    check_both("broken", broken).await;
    check_both("forbidden", Err("server \"s\": it answered with HTTP 403 Forbidden")).await;
}

#[tokio::test]
async fn a_busy_server_sets_the_retry_delay() {
    for (tool, seconds) in [("busy", 7), ("unavailable", 5)] {
        let server = ScriptedHttpServer::start(&json!({}));
        let gateway = gateway(remote(&server.url()));
        let error = call(&gateway, tool).await.expect_err("busy");
        let busy = "server \"s\": it is busy and asked for a pause";
        assert_eq!(error, format!("{busy}; try again in {seconds} s"));
        // No further call reaches it.
        assert!(call(&gateway, "echo").await.expect_err("held off").contains("is busy"));
        let log = server.log().await;
        assert_eq!(log.iter().filter(|it| it["body"]["method"] == "tools/call").count(), 1);
    }
}

#[tokio::test]
async fn more_rights_need_a_login() {
    let scope = "server \"s\": it requires more rights than the login grants; log in with \
                 `codexec servers login s`";
    check_both("more_scope", Err(scope)).await;
}
