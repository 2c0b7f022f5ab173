use super::*;
use crate::ServerState;
use codexec_mcp_config::SecretSource;

#[tokio::test]
async fn both_protocol_eras_work() {
    for (plan, version) in [
        (json!({"era": "modern"}), "2026-07-28"),
        (json!({"era": "legacy"}), "2025-11-25"),
        (json!({"era": "legacy", "discover": 400}), "2025-11-25"),
        (json!({"era": "legacy", "discover": 404}), "2025-11-25"),
        (json!({"era": "legacy", "discover": 500}), "2025-11-25"),
    ] {
        let server = ScriptedHttpServer::start(&plan);
        let gateway = gateway(remote(&server.url()));
        let headers = call(&gateway, "headers").await.expect("an answer");
        assert_eq!(headers["mcp-protocol-version"], version, "{plan}");
        gateway.shutdown().await;
    }
}

#[tokio::test]
async fn sse_servers_are_detected() {
    for kind in [RemoteKind::Sse, RemoteKind::Http] {
        let server = ScriptedHttpServer::start(&json!({"era": "sse"}));
        let gateway = gateway(RemoteConfig { kind, ..remote(&server.url()) });
        let echoed = call_with(&gateway, "echo", json!({"n": 1})).await;
        assert_eq!(echoed, Ok(json!({"n": 1})), "{kind:?}");
        gateway.shutdown().await;
    }
}

#[tokio::test]
async fn rem_2_the_sse_endpoint_stays_within_the_origin() {
    let other = ScriptedHttpServer::start(&json!({}));
    let plan = json!({"era": "sse", "endpoint": other.url()});
    let server = ScriptedHttpServer::start(&plan);
    let gateway = gateway(RemoteConfig { kind: RemoteKind::Sse, ..remote(&server.url()) });
    let error = call(&gateway, "echo").await.expect_err("refused");
    assert_eq!(error, "server \"s\": its SSE endpoint is on another origin");
    assert_eq!(other.log().await, Vec::<Value>::new());
}

#[tokio::test]
async fn rem_2_redirects_stay_within_the_origin() {
    let other = ScriptedHttpServer::start(&json!({}));
    let secret =
        vec![("Authorization".to_owned(), SecretSource::Plain("Bearer hunter2".to_owned()))];
    // During the handshake, and during a call.
    for plan in [json!({"redirect": other.url()}), json!({"elsewhere": other.url()})] {
        let server = ScriptedHttpServer::start(&plan);
        let gateway = gateway(RemoteConfig { headers: secret.clone(), ..remote(&server.url()) });
        let error = call(&gateway, "elsewhere").await.expect_err("refused");
        let place = format!("it redirects to another origin (http://127.0.0.1:{})", other.port);
        assert!(error.contains(&place), "{error}");
        assert!(
            server.log().await.iter().all(|it| it["headers"]["authorization"] == "Bearer hunter2")
        );
        gateway.shutdown().await;
    }
    assert_eq!(other.log().await, Vec::<Value>::new());

    let server = ScriptedHttpServer::start(&json!({"moved": true}));
    let gateway = gateway(RemoteConfig { headers: secret, ..remote(&server.url()) });
    assert_eq!(call_with(&gateway, "echo", json!({"n": 1})).await, Ok(json!({"n": 1})));
    gateway.shutdown().await;
}

#[tokio::test]
async fn broken_streams_are_resumed() {
    let server = ScriptedHttpServer::start(&json!({"era": "legacy"}));
    let gateway = gateway(remote(&server.url()));
    assert_eq!(call(&gateway, "resume").await, Ok(json!("resumed")));
    let log = server.log().await;
    let resumed = log.iter().filter(|it| it["headers"]["last-event-id"] == "7").count();
    assert_eq!(resumed, 1);
    let asked = log.iter().filter(|it| it["body"]["params"]["name"] == "resume").count();
    assert_eq!(asked, 1, "a call is never sent twice");
}

#[tokio::test]
async fn change_notifications_are_received() {
    let server = ScriptedHttpServer::start(&json!({"changes": true}));
    let gateway = gateway(remote(&server.url()));
    assert_eq!(call(&gateway, "echo").await, Ok(json!({})));
    // The server announces a change as soon as somebody subscribes, and has one more tool then.
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while call(&gateway, "new").await != Ok(json!({})) {
        assert!(std::time::Instant::now() < deadline, "nobody heard it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let log = server.log().await;
    let listened = log.iter().find(|it| it["body"]["method"] == "subscriptions/listen");
    let headers = &listened.expect("listened")["headers"];
    assert_eq!(headers["mcp-method"], "subscriptions/listen");
    assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
}

#[tokio::test]
async fn dropping_a_call_closes_its_stream() {
    for era in ["modern", "legacy"] {
        let server = ScriptedHttpServer::start(&json!({ "era": era }));
        let gateway = gateway(remote(&server.url()));
        assert_eq!(call(&gateway, "echo").await, Ok(json!({})));
        let hanging = tokio::time::timeout(Duration::from_millis(300), call(&gateway, "hang"));
        assert!(hanging.await.is_err());
        assert_eq!(call(&gateway, "was_closed").await, Ok(json!("yes")), "{era}");
        let log = server.log().await;
        let told = log.iter().filter(|it| it["body"]["method"] == "notifications/cancelled");
        assert_eq!(told.count(), usize::from(era == "legacy"));
    }
}

#[tokio::test]
async fn an_expired_session_is_renewed() {
    let server = ScriptedHttpServer::start(&json!({"era": "legacy"}));
    let gateway = gateway(remote(&server.url()));
    let error = call(&gateway, "forget").await.expect_err("forgotten");
    assert_eq!(error, "server \"s\": it ended (its session is over)");
    assert_eq!(call_with(&gateway, "echo", json!({"n": 2})).await, Ok(json!({"n": 2})));
    gateway.shutdown().await;
    assert_eq!(server.log().await.iter().filter(|it| it["do"] == "DELETE").count(), 1);
}

#[tokio::test]
async fn a_restarted_server_is_reconnected() {
    let server = ScriptedHttpServer::start(&json!({}));
    let port = server.port;
    let gateway = gateway(remote(&server.url()));
    assert_eq!(call(&gateway, "echo").await, Ok(json!({})));
    drop(server);
    // The first call may still find the old connection open.
    let mut error = call(&gateway, "echo").await.expect_err("gone");
    if error.contains("the connection broke") {
        error = call(&gateway, "echo").await.expect_err("gone");
    }
    assert!(error.contains("no connection: "), "{error}");
    assert_ne!(gateway.health()[0].state, ServerState::Ready);
    let _server = ScriptedHttpServer::start(&json!({ "port": port }));
    assert_eq!(call(&gateway, "echo").await, Ok(json!({})));
}

#[tokio::test]
async fn refused_connections_fail_at_once() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("bound").port();
    drop(free);
    let gateway = gateway(remote(&format!("http://127.0.0.1:{port}/mcp")));
    let error = call(&gateway, "echo").await.expect_err("nobody");
    assert!(error.starts_with("server \"s\": it did not start: no connection: "), "{error}");
}

#[tokio::test]
async fn headers_resolve_their_secrets() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("key");
    std::fs::write(&path, "hunter2\n").expect("written");
    let server = ScriptedHttpServer::start(&json!({}));
    let headers = vec![
        ("X-Api-Key".to_owned(), SecretSource::File(path)),
        ("X-Plain".to_owned(), SecretSource::Plain("a".to_owned())),
    ];
    let with_headers = gateway(RemoteConfig { headers, ..remote(&server.url()) });
    let seen = call(&with_headers, "headers").await.expect("an answer");
    assert_eq!((&seen["x-api-key"], &seen["x-plain"]), (&json!("hunter2"), &json!("a")));

    let headers = vec![("X-Api-Key".to_owned(), SecretSource::Plain("hunter2\r\nX: 1".to_owned()))];
    let bad = gateway(RemoteConfig { headers, ..remote(&server.url()) });
    let error = call(&bad, "headers").await.expect_err("not sent");
    let expected = "server \"s\": it did not start: `headers.X-Api-Key`: its value is not \
                    a valid header value";
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_rejected_authorization_header_is_named() {
    let server = ScriptedHttpServer::start(&json!({"tokens": ["right"]}));
    let headers =
        vec![("Authorization".to_owned(), SecretSource::Plain("Bearer wrong".to_owned()))];
    let gateway = gateway(RemoteConfig { headers, ..remote(&server.url()) });
    let error = call(&gateway, "echo").await.expect_err("refused");
    let expected = "it rejects the Authorization header of its entry";
    assert!(error.ends_with(expected), "{error}");
}

#[tokio::test]
async fn arguments_are_mirrored_into_headers() {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
    }});
    let tool = |name: &str, schema: &Value| json!({"name": name, "inputSchema": schema});
    let mut twice = schema.clone();
    twice["properties"]["other"] = json!({"type": "string", "x-mcp-header": "REGION"});
    let server = ScriptedHttpServer::start(
        &json!({"raw_tools": [tool("go", &schema), tool("bad", &twice)]}),
    );
    let gateway = gateway(remote(&server.url()));
    call_with(&gateway, "go", json!({"region": "eu"})).await.expect("an answer");
    let log = server.log().await;
    let called = log.iter().find(|it| it["body"]["params"]["name"] == "go").expect("called");
    assert_eq!(called["headers"]["mcp-param-region"], "eu");
    assert_eq!(called["headers"]["mcp-name"], "go");
    let error = call(&gateway, "bad").await.expect_err("left out");
    assert!(error.starts_with("no tool \"bad\""), "{error}");
}
