//! A client that nobody here wrote, which holds results to the schema that they were promised in.

use serde_json::json;

use super::Seed;
use crate::clients::sdk_saw;
use crate::support::Client;

const SDK: &str = include_str!("sdk.py");

#[test]
fn the_python_sdk_finds_every_result_as_its_schema_says() {
    let Some(saw) = sdk_saw("code-executor", SDK) else { return };
    let expected = json!({
        "tools": ["executeTypescript", "executePython", "health"],
        "typescript": [true, "2"],
        "python": [true, "2"],
        "threw": [false, true],
        "refused": [null, true, "validation"],
        "healthy": true,
    });
    assert_eq!(saw, expected);
}

/// Text and structured content say the same; clients that show only the latter get it once.
#[test]
fn clients_that_show_only_structured_content_get_no_text() {
    for (name, blocks) in [("it", 1), ("claude-code", 0), ("codex-mcp-client", 0)] {
        let mut client = Client::raw(&json!({}), |command| {
            command.args(["--toolset", "code-executor"]);
        });
        client.shake_hands_as(name);
        let mut seed = Seed { client };
        let long = json!({"code": "print('x' * 1000)"});
        let result = seed.call("executePython", &long);
        assert_eq!(result["content"].as_array().map(Vec::len), Some(blocks), "{name}: {result}");
        assert_eq!(result.to_string().matches(&"x".repeat(1000)).count(), 1 + blocks, "{name}");
        let result = seed.call("health", &json!({}));
        assert_eq!(result["content"].as_array().map(Vec::len), Some(blocks), "{name}: {result}");
        assert_eq!(result["structuredContent"]["healthy"], true, "{name}: {result}");
        // An error without structured content is always text.
        assert_eq!(seed.refused("executePython", &json!({}))["errorType"], "validation");
    }
}
