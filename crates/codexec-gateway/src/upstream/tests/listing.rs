//! Lists of tools.

use super::*;

#[tokio::test]
async fn invalid_tools_affect_only_themselves() {
    let raw = json!([
        {"name": "no_schema"},
        {"name": "null_schema", "inputSchema": null},
        {"name": "true_schema", "inputSchema": true, "icons": "star", "outputSchema": true},
        {"name": "hints", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "yes"}},
        {"name": 7},
        {"name": ""},
        {"name": "in\u{200b}visible"},
        "not a tool",
        {"name": "echo"},
    ]);
    let gateway = gateway(&json!({"tools": ["echo"], "raw_tools": raw, "description_mb": 9}));
    let tools = gateway.list(&ToolFilter::all()).await;
    let names: Vec<&str> = tools.iter().map(|tool| tool.tool.as_str()).collect();
    assert_eq!(names, ["echo", "no_schema", "null_schema", "true_schema", "hints", "long"]);
    let long = gateway
        .schema("s.long", &ToolFilter::all(), TypingsLanguage::TypeScript)
        .await
        .expect("listed");
    assert!(long.description.expect("has one").len() <= 16 << 10);
    assert_eq!(gateway.health()[0].problems.len(), 5);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_list_over_the_limit_fails_its_server() {
    let gateway = gateway(&json!({"description_mb": 11}));
    let why = "server \"s\": it did not start: no list of tools: the server's answer is over the \
               limit of 10 MiB; ask for less";
    assert_eq!(call(&gateway, "echo", json!({})).await.expect_err("too long").message, why);
}

#[tokio::test]
async fn endless_pages_are_cut_off() {
    let gateway = gateway(&json!({"pages": "endless"}));
    assert_eq!(gateway.list(&ToolFilter::all()).await.len(), 100);
    gateway.shutdown().await;
    check(json!({"pages": "repeated"}), "echo", Ok(json!({}))).await;
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    let gateway = gateway(&json!({"tools": ["echo", "change"]}));
    call(&gateway, "change", json!({})).await.expect("works");
    let added = async {
        while gateway.list(&ToolFilter::all()).await.len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), added).await.expect("listed again");
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_changed_schema_affects_only_its_tool() {
    let gateway = gateway(&json!({"tools": ["echo", "new_schema", "lone_surrogate"]}));
    assert_eq!(call(&gateway, "echo", json!({})).await, Ok(json!({})));
    call(&gateway, "new_schema", json!({})).await.expect("works");
    let refused = async {
        while call(&gateway, "echo", json!({})).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), refused).await.expect("listed again");
    let why = call(&gateway, "echo", json!({"n": 1})).await.expect_err("refused");
    assert_eq!(why.code, CallCode::ToolQuarantined);
    call(&gateway, "lone_surrogate", json!({})).await.expect("works");
    gateway.shutdown().await;
}

#[tokio::test]
async fn thousands_of_tools_are_listed_up_to_the_limit() {
    let gateway = gateway(&json!({"tools": ["echo"], "many": 6_000}));
    assert_eq!(call(&gateway, "echo", json!({})).await, Ok(json!({})));
    assert_eq!(gateway.list(&ToolFilter::all()).await.len(), 5_000);
    gateway.shutdown().await;
}
