use http::Request;

use super::*;

const LOCAL: &str = "127.0.0.1:7777";

fn check(local: &str, headers: &[(&str, &str)]) -> Result<(), HttpError> {
    let mut request = Request::builder().uri("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (head, ()) = request.body(()).expect("a request").into_parts();
    let address = Some(local.parse().expect("an address"));
    check_head(&head, LocalEnd { address, is_tls: false }, &["Box.example".to_owned()])
}

#[test]
fn http_1_only_our_own_host_is_served() {
    for host in ["127.0.0.1:7777", "localhost:7777", "LocalHost:7777", "[::1]:7777", "box.example"]
    {
        assert_eq!(check(LOCAL, &[("host", host)]), Ok(()), "{host}");
    }
    for host in [
        "",
        "localhost",
        "localhost:7778",
        "localhost.:7777",
        "evil.example:7777",
        "127.0.0.1.evil.example:7777",
        "x@127.0.0.1:7777",
        "127.0.0.1:7777:7777",
        "0.0.0.0:7777",
        "evilbox.example",
    ] {
        assert_eq!(check(LOCAL, &[("host", host)]), Err(HttpError::Host), "{host}");
    }
    let two = [("host", "localhost:7777"), ("host", "localhost:7777")];
    assert_eq!(check(LOCAL, &two), Err(HttpError::Host));
    assert_eq!(check(LOCAL, &[]), Err(HttpError::Host));
    let far = [("host", "localhost:7777")];
    assert_eq!(check("192.0.2.1:7777", &far), Err(HttpError::Host));
    assert_eq!(check("192.0.2.1:80", &[("host", "192.0.2.1")]), Ok(()));
}

#[test]
fn http_1_pages_of_other_origins_are_refused() {
    let with = |name: &'static str, value: &str| {
        check(LOCAL, &[("host", "localhost:7777"), (name, value)])
    };
    for origin in ["http://localhost:7777", "http://127.0.0.1:7777", "https://box.example"] {
        assert_eq!(with("origin", origin), Ok(()), "{origin}");
    }
    for origin in
        ["null", "", "http://evil.example", "http://localhost:1", "file://", "localhost:7777"]
    {
        assert_eq!(with("origin", origin), Err(HttpError::Origin), "{origin}");
    }
    assert_eq!(with("sec-fetch-site", "cross-site"), Err(HttpError::Origin));
    assert_eq!(with("sec-fetch-site", "same-site"), Err(HttpError::Origin));
    assert_eq!(with("sec-fetch-site", "same-origin"), Ok(()));
    let long = "x".repeat(MAX_HEADER_BYTES);
    assert_eq!(with("x-long", &long), Err(HttpError::Headers));
    assert_eq!(with("mcp-session-id", &long), Err(HttpError::SessionId));
}

#[test]
fn tokens_come_from_two_headers_and_never_contradict() {
    let of = |list: &[(&'static str, &'static str)]| {
        let headers: HeaderMap = list
            .iter()
            .map(|(name, value)| {
                (HeaderName::from_static(name), http::HeaderValue::from_static(value))
            })
            .collect();
        token(&headers).map(str::to_owned)
    };
    assert_eq!(of(&[("authorization", "Bearer abc")]).as_deref(), Some("abc"));
    assert_eq!(of(&[("x-api-key", "abc")]).as_deref(), Some("abc"));
    assert_eq!(
        of(&[("authorization", "bearer abc"), ("x-api-key", "abc")]).as_deref(),
        Some("abc")
    );
    assert_eq!(of(&[("authorization", "Bearer abc"), ("x-api-key", "abd")]), None);
    assert_eq!(of(&[("authorization", "Basic abc")]), None);
    assert_eq!(of(&[("authorization", "Basic abc"), ("x-api-key", "abc")]), None);
    assert_eq!(of(&[]), None);
}

#[test]
fn proxies_name_the_client() {
    let proxy = |address: IpAddr| address.to_string().starts_with("10.");
    let of = |value: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", http::HeaderValue::from_static(value));
        forwarded_for(&headers, proxy).map(|address| address.to_string())
    };
    // The client wrote the first one itself.
    assert_eq!(of("1.1.1.1, 192.0.2.7, 10.0.0.2").as_deref(), Some("192.0.2.7"));
    assert_eq!(of("nonsense, 10.0.0.2"), None);
}

#[test]
fn deep_and_invalid_texts_are_refused_unparsed() {
    assert_eq!(check_json(br#"{"a": [1, "[[["]}"#), Ok(()));
    assert_eq!(check_json("[".repeat(100_000).as_bytes()), Err(HttpError::Json));
    assert_eq!(check_json(b"\x80\xff{}"), Err(HttpError::Json));
}
