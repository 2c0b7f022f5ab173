//! A client that nobody here wrote, which holds results to the schema that they were promised in.

use serde_json::json;

use crate::clients::sdk_saw;

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
