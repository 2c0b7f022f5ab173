use serde_json::json;

use super::{super::params, *};

fn shown(message: &Value, mirrored: &[Mirrored]) -> Vec<String> {
    let headers = headers(message, "2026-07-28", mirrored);
    let show = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("{name}: {}", value.to_str().expect("text"))
    };
    headers.iter().map(show).collect()
}

#[test]
fn a_request_shows_what_it_is() {
    let list = json!({"method": "tools/list", "params": {}});
    assert_eq!(shown(&list, &[]), ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/list"]);
    let read = json!({"method": "resources/read", "params": {"uri": "file:///ä"}});
    assert_eq!(shown(&read, &[])[2], "mcp-name: =?base64?ZmlsZTovLy/DpA==?=");
}

#[test]
fn arguments_are_mirrored_where_the_tool_asks_for_it() {
    let schema = json!({"properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "where": {"type": "object", "properties": {
            "zone": {"type": "integer", "x-mcp-header": "Zone"},
        }},
        "absent": {"type": "string", "x-mcp-header": "Absent"},
    }});
    let mirrored = params::mirrored(&schema).expect("valid");
    let call = json!({"method": "tools/call", "params": {
        "name": "t",
        "arguments": {"region": " eu\r\nX-Evil: 1", "where": {"zone": 7}},
    }});
    let expected = [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: t",
        "mcp-param-region: =?base64?IGV1DQpYLUV2aWw6IDE=?=",
        "mcp-param-zone: 7",
    ];
    assert_eq!(shown(&call, &mirrored), expected);
}
