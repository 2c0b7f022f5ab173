use serde_json::json;

use super::*;

fn call(server: &str, tool: &str, error: Option<(&str, &str)>) -> CallRecord {
    CallRecord {
        after: None,
        number: 1,
        server: server.to_owned(),
        tool: tool.to_owned(),
        args: String::new(),
        args_bytes: 0,
        duration: Some(Duration::from_millis(10)),
        error_code: error.map(|(code, _)| code.to_owned()),
        message: error.map(|(_, message)| message.to_owned()),
        result_bytes: None,
    }
}

#[test]
fn all_spellings_of_a_name_are_one_tool() {
    let calls = [
        call("", "mcp__time__now", None),
        call("", "time.now", None),
        call("time", "now", Some(("UPSTREAM_ERROR", "no clock"))),
        call("", "time:now", None),
        call("", "now", None),
    ];
    let calls = CallSummaries::from_record(&calls);
    assert_eq!(calls.names(), ["mcp__time__now", "now"]);
    assert_eq!(
        calls.summaries()[0],
        json!({
            "toolName": "mcp__time__now",
            "callCount": 4,
            "successCount": 3,
            "errorCount": 1,
            "totalDurationMs": 40.0,
            "averageDurationMs": 10.0,
            "lastCallDurationMs": 10.0,
            "lastCallStatus": "success",
            "lastErrorMessage": "no clock",
        })
    );
}

#[test]
fn refused_calls_are_not_listed() {
    let calls = [
        call("time", "now", Some(("TOOL_NOT_ALLOWED", ""))),
        call("time", "nwo", Some(("TOOL_NOT_FOUND", ""))),
        call("time", "now", Some(("INVALID_ARGS", ""))),
        call(DISCOVERY_SERVER, "searchTools", None),
        CallRecord { duration: None, ..call("time", "later", None) },
    ];
    let calls = CallSummaries::from_record(&calls);
    assert_eq!(calls.names(), ["mcp__time__later"]);
    let summary = &calls.summaries()[0];
    assert_eq!(summary["lastCallStatus"], "error");
    assert_eq!(summary["lastErrorMessage"], "no answer before the execution ended");
}

#[test]
fn at_most_a_hundred_tools_are_listed() {
    let many: Vec<CallRecord> =
        (0..MAX_TOOLS + 1).map(|n| call("s", &n.to_string(), None)).collect();
    let mut many_twice = many.clone();
    many_twice.extend(many);
    let calls = CallSummaries::from_record(&many_twice);
    assert_eq!(calls.names().len(), MAX_TOOLS);
    assert!(calls.summaries().iter().all(|summary| summary["callCount"] == 2));
}
