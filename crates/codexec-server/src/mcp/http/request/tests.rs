use http::HeaderValue;
use serde_json::json;

use super::*;

fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
    list.iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

fn modern(method: &str, name: &str) -> Value {
    let meta = json!({META_VERSION: FIRST_MODERN, META_CAPABILITIES: {}});
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": name, "_meta": meta}})
}

fn is_refused(list: &[(&'static str, &'static str)], raw: &Value) -> bool {
    classify(&headers(list), raw, raw["method"] == "initialize").is_err()
}

#[test]
fn the_era_follows_from_the_message() {
    let old = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert!(matches!(classify(&HeaderMap::new(), &old, false), Ok(Era::Sessions)));
    let known = headers(&[("mcp-protocol-version", "2025-03-26")]);
    assert!(matches!(classify(&known, &old, false), Ok(Era::Sessions)));
    assert!(is_refused(&[("mcp-protocol-version", "2025-13-13")], &old));
    let new = modern("tools/call", "x");
    let right = headers(&[
        ("mcp-protocol-version", FIRST_MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?eA==?="),
    ]);
    assert!(matches!(classify(&right, &new, false), Ok(Era::SingleRequests)));
}

#[test]
fn http_8_headers_that_contradict_the_message_are_refused() {
    let version = ("mcp-protocol-version", FIRST_MODERN);
    let method = ("mcp-method", "tools/call");
    let call = modern("tools/call", "x");
    assert!(is_refused(&[], &call), "no version");
    assert!(is_refused(&[version], &call), "no method");
    assert!(is_refused(&[version, method], &call), "no name");
    assert!(is_refused(&[version, method, ("mcp-name", "y")], &call), "another name");
    assert!(is_refused(&[version, ("mcp-method", "ping"), ("mcp-name", "x")], &call));
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert!(is_refused(&[version, ("mcp-method", "tools/list")], &bare), "no _meta");
    let hello =
        json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}});
    assert!(is_refused(&[("mcp-protocol-version", "2025-06-18")], &hello));
    assert!(is_refused(&[("mcp-method", "ping")], &hello));
}
