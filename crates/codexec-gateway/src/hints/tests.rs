use serde_json::json;

use super::*;

#[test]
fn missing_hints_mean_the_worst_case() {
    let kinds = [ToolKind::Any, ToolKind::ReadOnly, ToolKind::Safe, ToolKind::Destructive];
    let check = |annotations: Value, expected: [bool; 4]| {
        let hints = ToolHints::read(&json!({"name": "x", "annotations": annotations}));
        assert_eq!(kinds.map(|kind| hints.matches(kind)), expected, "{annotations}");
    };
    check(json!({}), [true, false, false, true]);
    check(json!(null), [true, false, false, true]);
    check(json!({"readOnlyHint": "yes"}), [true, false, false, true]);
    check(json!({"readOnlyHint": true}), [true, true, true, false]);
    check(json!({"readOnlyHint": true, "destructiveHint": true}), [true, true, true, false]);
    check(json!({"destructiveHint": false}), [true, false, true, false]);
    check(json!({"readOnlyHint": false, "destructiveHint": true}), [true, false, false, true]);
}
