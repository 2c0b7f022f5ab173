use super::*;
use crate::{LoginError, login};

/// Acts as a user who consents: opens the address and follows the redirect.
fn browse(address: &url::Url) {
    let address = address.clone();
    tokio::spawn(async move {
        let client = crate::web::build_client(&settings(None)).expect("a client");
        let answer = client.get(address).send().await.expect("an answer");
        let back = answer.headers()["location"].to_str().expect("text").to_owned();
        client.get(back).send().await.expect("an answer");
    });
}

async fn log_in(
    server: &ScriptedHttpServer,
    home: &TempDir,
) -> Result<crate::LoginSummary, LoginError> {
    login(&config(remote(&server.url())), &settings(Some(home)), browse).await
}

fn at_home(server: &ScriptedHttpServer, home: &TempDir) -> Gateway {
    Gateway::new(vec![config(remote(&server.url()))], settings(Some(home)))
}

#[tokio::test]
async fn a_login_is_used_kept_and_renewed() {
    let home = tempfile::tempdir().expect("a directory");
    let server = ScriptedHttpServer::start(&json!({"oauth": {}}));
    let gateway = at_home(&server, &home);
    let error = call(&gateway, "echo").await.expect_err("refused");
    assert_eq!(error, "server \"s\": it requires a login; log in with `codexec servers login s`");
    let done = log_in(&server, &home).await.expect("logged in");
    assert_eq!(done.issuer, Some(format!("http://127.0.0.1:{}", server.port)));

    // Another process finds the stored login.
    let gateway = at_home(&server, &home);
    let seen = call(&gateway, "headers").await.expect("an answer");
    assert_eq!(seen["authorization"], "Bearer token-1");

    // The token has expired: one renewal serves all callers.
    let path = home.path().join("tokens/s.json");
    let mut kept: Value =
        serde_json::from_slice(&std::fs::read(&path).expect("kept")).expect("JSON");
    kept["grant"]["expires_at"] = json!(1);
    std::fs::write(&path, kept.to_string()).expect("written");
    let before = server.times("/token").await;
    let calls = (0..10).map(|_| call(&gateway, "headers"));
    for seen in futures::future::join_all(calls).await {
        assert_eq!(seen.expect("an answer")["authorization"], "Bearer token-2");
    }
    assert_eq!(server.times("/token").await - before, 1);
    let log = server.log().await;
    let renewal = log.iter().rev().find(|it| it["path"] == "/token").expect("renewed");
    let form = renewal["body"].as_str().expect("a form");
    let resource = format!("resource=http%3A%2F%2F127.0.0.1%3A{}%2Fmcp", server.port);
    assert!(form.contains("refresh_token=refresh-1") && form.contains(&resource), "{form}");
    // The client secret from the registration is still used.
    assert_eq!(renewal["headers"]["authorization"], "Basic bWFkZTpzM2NyZXQ=");
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once() {
    let home = tempfile::tempdir().expect("a directory");
    let server = ScriptedHttpServer::start(&json!({"oauth": {}}));
    log_in(&server, &home).await.expect("logged in");
    let path = home.path().join("tokens/s.json");
    let mut kept: Value =
        serde_json::from_slice(&std::fs::read(&path).expect("kept")).expect("JSON");
    kept["grant"]["access_token"] = json!("revoked");
    std::fs::write(&path, kept.to_string()).expect("written");
    let gateway = at_home(&server, &home);
    let seen = call(&gateway, "headers").await.expect("an answer");
    assert_eq!(seen["authorization"], "Bearer token-2");
}

#[tokio::test]
async fn rem_4_a_token_goes_only_to_the_server_it_was_made_for() {
    let home = tempfile::tempdir().expect("a directory");
    let server = ScriptedHttpServer::start(&json!({"oauth": {}}));
    log_in(&server, &home).await.expect("logged in");
    // The same name, but another server.
    let other = ScriptedHttpServer::start(&json!({}));
    let gateway = at_home(&other, &home);
    let seen = call(&gateway, "headers").await.expect("an answer");
    assert_eq!(seen.get("authorization"), None);
}

#[tokio::test]
async fn rem_5_hostile_addresses_end_the_login() {
    let out = tempfile::tempdir().expect("a directory");
    let pwn = out.path().join("pwn").display().to_string();
    for address in [
        "javascript:alert(1)".to_owned(),
        "file:///bin/sh".to_owned(),
        format!("http://a/$(touch {pwn})"),
        format!("http://a/`touch {pwn}`"),
        format!("http://a/\" & touch {pwn} & \""),
        "vscode://x".to_owned(),
        "-e".to_owned(),
    ] {
        let home = tempfile::tempdir().expect("a directory");
        let server = ScriptedHttpServer::start(&json!({
            "oauth": {"server": {"authorization_endpoint": address}},
        }));
        let shown = |address: &url::Url| panic!("{address} was shown");
        let asked = config(remote(&server.url()));
        let error = login(&asked, &settings(Some(&home)), shown).await.expect_err("refused");
        assert!(matches!(error, LoginError::Address { .. }), "{address}: {error}");
    }
    assert_eq!(std::fs::read_dir(out.path()).expect("there").count(), 0);
}

#[tokio::test]
async fn inconsistent_logins_are_refused() {
    for (oauth, expected) in [
        (json!({"back": {"iss": "https://evil.example"}}), "issuer mismatch"),
        (json!({"back": {"error": "access_denied"}}), "the login was refused: access_denied"),
        (json!({"server": {"token_endpoint": "http://evil.example/token"}}), "token endpoint"),
        (json!({"server": {"issuer": "https://evil.example"}}), "issuer"),
        (json!({"server": {"code_challenge_methods_supported": ["plain"]}}), "S256"),
        (json!({"resource": {"resource": "https://evil.example/mcp"}}), "resource"),
        (json!({"resource": {"authorization_servers": ["http://10.0.0.1"]}}), ""),
    ] {
        let home = tempfile::tempdir().expect("a directory");
        let server = ScriptedHttpServer::start(&json!({ "oauth": oauth }));
        let error = log_in(&server, &home).await.expect_err("refused").to_string();
        assert!(error.contains(expected), "{oauth}: {error}");
        assert_eq!(server.times("/token").await, 0, "{oauth}: {error}");
        assert!(!home.path().join("tokens/s.json").exists());
    }
}

#[tokio::test]
async fn login_fails_if_the_server_requires_none() {
    let home = tempfile::tempdir().expect("a directory");
    let server = ScriptedHttpServer::start(&json!({}));
    let error = log_in(&server, &home).await.expect_err("none");
    assert!(matches!(error, LoginError::NotRequired), "{error}");
}
