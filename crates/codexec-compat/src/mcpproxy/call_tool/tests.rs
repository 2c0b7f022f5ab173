use serde_json::json;

use super::*;

#[track_caller]
fn check(arguments: &Value, called_as: &str, expected: &str) {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let actual = match read(arguments.clone(), operation_of(called_as)) {
        Ok((name, args)) => format!("{name} {}", Value::Object(args)),
        Err(problem) => problem,
    };
    assert_eq!(actual, expected, "{called_as} {arguments:?}");
}

#[test]
fn arguments_can_be_an_object_or_its_json() {
    check(&json!({"name": "a:b"}), "call_tool", "a:b {}");
    check(&json!({"name": "a:b", "args": {"c": 1}}), "call_tool", "a:b {\"c\":1}");
    check(&json!({"name": "a:b", "args_json": "{\"c\": 1}"}), "call_tool", "a:b {\"c\":1}");
    let both = json!({"name": "a:b", "args": {}, "args_json": "{}"});
    check(&both, "call_tool", "args, args_json: both are given; give one");
    let must = "it must be an object of the tool's arguments";
    check(&json!({"name": "a:b", "args": [1]}), "call_tool", &format!("args: {must}"));
    check(&json!({"name": "a:b", "args_json": "[1]"}), "call_tool", &format!("args: {must}"));
    let torn = json!({"name": "a:b", "args_json": "{"});
    let said = format!("args_json: EOF while parsing an object at line 1 column 1; {must}");
    check(&torn, "call_tool", &said);
    check(&json!({}), "call_tool", "name: it is missing; it must be a string");
    let unknown = json!({"name": "a:b", "arguments": {}});
    let said = "arguments: unknown; allowed fields: name, args, args_json, intent";
    check(&unknown, "call_tool", said);
}

#[test]
fn an_intent_is_read_and_must_not_contradict_the_name() {
    let with = |intent: Value| json!({"name": "a:b", "intent": intent});
    let whole = json!({"operation_type": "read", "data_sensitivity": "public", "reason": "r"});
    check(&with(whole.clone()), "call_tool", "a:b {}");
    check(&with(whole.clone()), "call_tool_read", "a:b {}");
    let said = "intent.operation_type: it is not what this tool does; leave it out";
    check(&with(whole), "call_tool_write", said);
    let said = "intent.operation_type: \"look\" is not allowed; it must be one of read, write, \
                destructive";
    check(&with(json!({"operation_type": "look"})), "call_tool", said);
    let said = "intent.why: unknown; allowed fields: operation_type, data_sensitivity, reason";
    check(&with(json!({"why": 1})), "call_tool", said);
    check(&with(json!("read")), "call_tool", "intent: it must be an object");
    assert!(is_tool("call_tool_destructive") && !is_tool("call_tool_other"));
}
