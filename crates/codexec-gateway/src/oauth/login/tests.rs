use super::*;

#[test]
fn rem_5_only_web_addresses_are_opened() {
    let far = Url::parse("https://mcp.example.com/mcp").expect("a URL");
    let near = Url::parse("http://127.0.0.1:1/mcp").expect("a URL");
    let check = |server: &Url, address: &str, expected: bool| {
        assert_eq!(check_browser_url(server, address).is_ok(), expected, "{server}: {address:?}");
    };
    check(&far, "https://login.example.com/authorize?a=b&c=%20d#e", true);
    check(&near, "http://127.0.0.1:2/authorize", true);
    for hostile in [
        "javascript:alert(1)",
        "file:///bin/sh",
        "http://a/$(touch /tmp/pwn)",
        "http://a/`touch /tmp/pwn`",
        "http://a/\" & touch /tmp/pwn & \"",
        "https://a/$(touch${IFS}pwn)",
        "https://a/;touch",
        "https://a/\u{1b}[2J",
        "https://a/\nb",
        "vscode://x",
        "ms-msdt:/id",
        "data:text/html,x",
        "-e",
        "--help",
        " https://a/",
        "https://",
        "http://login.example.com/",
        "https://user@login.example.com/",
        "",
    ] {
        check(&far, hostile, false);
        check(&near, hostile, false);
    }
    check(&far, "http://127.0.0.1:2/authorize", false);
    check(&far, &format!("https://a/{}", "x".repeat(URL_BYTES)), false);
}
