use serde_json::json;

use super::{super::mirrored_arguments, *};

fn show_headers(message: &Value, mirrored: &[MirroredArgument]) -> Vec<String> {
    let headers = build_headers(message, "2026-07-28", mirrored);
    let show = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("{name}: {}", value.to_str().expect("text"))
    };
    headers.iter().map(show).collect()
}

#[test]
fn requests_carry_version_method_and_name() {
    let list = json!({"method": "tools/list", "params": {}});
    assert_eq!(
        show_headers(&list, &[]),
        ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/list"]
    );
    let read = json!({"method": "resources/read", "params": {"uri": "file:///ä"}});
    assert_eq!(show_headers(&read, &[])[2], "mcp-name: =?base64?ZmlsZTovLy/DpA==?=");
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
    let mirrored = mirrored_arguments::find_mirrored_arguments(&schema).expect("valid");
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
    assert_eq!(show_headers(&call, &mirrored), expected);
}
