use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

/// THREAT[REM-3]
#[test]
fn rem_3_a_remote_server_cannot_send_us_to_this_machine() {
    let check = |base: &str, to: &str, expected: bool| {
        assert_eq!(is_allowed_target(&url(base), &url(to)), expected, "{base} to {to}");
    };
    let far = "https://mcp.example.com/mcp";
    check(far, "https://login.example.net/token", true);
    check(far, "http://login.example.net/token", false);
    check(far, "http://127.0.0.1:8080/token", false);
    check(far, "https://localhost/token", false);
    check(far, "https://LOCALHOST./token", false);
    check(far, "https://10.0.0.1/token", false);
    check(far, "https://169.254.169.254/latest", false);
    check(far, "https://[::1]/", false);
    check(far, "https://[::ffff:127.0.0.1]/", false);
    check(far, "https://[64:ff9b::7f00:1]/", false);
    check(far, "https://[2002:7f00:1::]/", false);
    check(far, "https://[fd00::1]/", false);
    check(far, "https://0x7f.1/", false);
    check(far, "https://user:password@login.example.net/", false);
    check(far, "file:///etc/passwd", false);
    check(far, "javascript:alert(1)", false);
    check("http://127.0.0.1:1/mcp", "http://localhost:2/authorize", true);
    check("http://127.0.0.1:1/mcp", "http://login.example.net/", false);
    check("https://10.0.0.5/mcp", "https://10.0.0.9/token", true);
    check("https://10.0.0.5/mcp", "https://localhost/token", false);
}

#[tokio::test]
async fn rem_3_a_name_of_this_machine_is_not_resolved() {
    let resolved = PublicResolver.resolve("localhost".parse().expect("a name")).await;
    assert!(resolved.is_err());
}
