use super::*;

/// Calls one tool and then another: the first must not affect the second.
async fn check(plan: &Value, tool: &str, expected: Result<Value, &str>) {
    let server = Scripted::start(plan);
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
async fn what_is_not_known_is_passed_on() {
    check_both("odd_content", Ok(json!({"type": "hologram", "beam": 1}))).await;
    check_both("junk_first", Ok(json!("after junk"))).await;
}

#[tokio::test]
async fn rem_1_answers_without_end_are_given_up() {
    let too_long =
        Err("server \"s\": the server's answer is over the limit of 10 MiB; ask for less");
    check_both("big_json", too_long.clone()).await;
    check_both("big_event", too_long.clone()).await;
    check_both("endless", too_long).await;
}

#[tokio::test]
async fn half_answers_fail_their_call_only() {
    check_both("drop", Err("server \"s\": it could not be asked: the connection broke")).await;
    let cut = Err("server \"s\": it could not be asked: it ended its answer before it was whole");
    check_both("cut", cut).await;
}

#[tokio::test]
async fn what_is_not_mcp_is_said() {
    let html = Err("server \"s\": it answered with text/html instead of a result of MCP");
    check_both("html", html).await;
    let id =
        Err("server \"s\": the server answered with its request's id as a text; that is not MCP");
    check_both("string_id", id).await;
    let broken =
        Err("server \"s\": it answered with HTTP 500 Internal Server Error: out of cheese[2J");
    check_both("broken", broken).await;
    check_both("forbidden", Err("server \"s\": it answered with HTTP 403 Forbidden")).await;
}

#[tokio::test]
async fn a_busy_server_says_for_how_long() {
    for (tool, seconds) in [("busy", 7), ("unavailable", 5)] {
        let server = Scripted::start(&json!({}));
        let gateway = gateway(remote(&server.url()));
        let error = call(&gateway, tool).await.expect_err("busy");
        let busy = "server \"s\": it is busy and asks to be left alone";
        assert_eq!(error, format!("{busy}; try again in {seconds} s"));
        // No further call reaches it.
        assert!(call(&gateway, "echo").await.expect_err("held off").contains("is busy"));
        let log = server.log().await;
        assert_eq!(log.iter().filter(|it| it["body"]["method"] == "tools/call").count(), 1);
    }
}

#[tokio::test]
async fn more_rights_need_a_login() {
    let scope = "server \"s\": it wants more rights than the login gave; log in with `codexec servers login s`";
    check_both("more_scope", Err(scope)).await;
}
