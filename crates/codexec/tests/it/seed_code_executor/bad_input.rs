//! Arguments outside of their bounds: the seed's error shape, and nothing is run.

use serde_json::{Value, json};

use super::Seed;

const FIELDS: &str = "allowed fields: code, allowedTools, timeoutMs, permissions, \
                      skipDangerousPatternCheck, enableSampling, maxSamplingRounds, \
                      maxSamplingTokens, samplingSystemPrompt, allowedSamplingModels";

/// By every name of both tools, with this error.
#[track_caller]
fn check(seed: &mut Seed, arguments: &Value, error: &str) {
    let mut arguments = arguments.clone();
    if arguments != json!({}) && arguments.get("code").is_none() {
        arguments["code"] = json!("1");
    }
    for tool in ["executeTypescript", "executePython", "run-typescript-code", "run-python-code"] {
        let expected = json!({"error": error, "errorType": "validation"});
        assert_eq!(seed.refused(tool, &arguments), expected, "{tool}");
    }
}

#[test]
fn code_time_and_names_are_bounded() {
    let seed = &mut Seed::start();
    let mut check = |arguments: Value, error: &str| check(seed, &arguments, error);
    check(json!({}), "code: it is missing; it must be a string");
    check(json!({"code": 1}), "code: 1 is not allowed; it must be a string");
    check(json!({"code": ""}), "code: it is empty; send at least one statement");
    check(json!({"code": " \n"}), "code: it is empty; send at least one statement");
    for timeout in [json!(999), json!(300_001), json!(1000.5), json!("1s"), json!(-1)] {
        let allowed = "it must be a whole number from 1000 to 300000";
        let error = format!("timeoutMs: {timeout} is not allowed; {allowed}");
        check(json!({"timeoutMs": timeout}), &error);
    }
    check(json!({"streaming": true}), &format!("streaming: unknown; {FIELDS}"));
    check(json!({"allowed_tools": [], "x": 1}), &format!("allowed_tools, x: unknown; {FIELDS}"));
    check(
        json!({"allowedTools": "*"}),
        "allowedTools: \"*\" is not allowed; it must be an array of strings",
    );
    check(
        json!({"allowedTools": vec!["mcp__a__b"; 501]}),
        "allowedTools: there are 501; at most 500 are allowed",
    );
    let shown = format!("{}…{}", "x".repeat(80), "x".repeat(40));
    check(
        json!({"allowedTools": ["x".repeat(201)]}),
        &format!("allowedTools: \"{shown}\" has more than 200 characters"),
    );
}

#[test]
fn permissions_and_sampling_are_bounded() {
    let seed = &mut Seed::start();
    let mut check = |arguments: Value, error: &str| check(seed, &arguments, error);
    check(json!({"permissions": []}), "permissions: it must be an object with read, write and net");
    check(
        json!({"permissions": {"read": "/x"}}),
        "permissions.read: \"/x\" is not allowed; it must be an array of strings",
    );
    check(
        json!({"permissions": {"env": []}}),
        "permissions.env: unknown; allowed fields: read, write, net",
    );
    check(
        json!({"permissions": {"write": vec!["/x"; 21]}}),
        "permissions.write: there are 21; at most 20 are allowed",
    );
    check(
        json!({"skipDangerousPatternCheck": "yes"}),
        "skipDangerousPatternCheck: \"yes\" is not allowed; it must be true or false",
    );
    check(
        json!({"enableSampling": 1}),
        "enableSampling: 1 is not allowed; it must be true or false",
    );
    check(
        json!({"maxSamplingRounds": 101}),
        "maxSamplingRounds: 101 is not allowed; it must be a whole number from 1 to 100",
    );
    check(
        json!({"maxSamplingTokens": 99}),
        "maxSamplingTokens: 99 is not allowed; it must be a whole number from 100 to 100000",
    );
    check(
        json!({"samplingSystemPrompt": "p".repeat(100_001)}),
        "samplingSystemPrompt: it has 100001 characters; at most 100000 are allowed",
    );
    check(
        json!({"allowedSamplingModels": vec!["m"; 501]}),
        "allowedSamplingModels: there are 501; at most 500 are allowed",
    );
}

#[test]
fn a_name_that_is_none_is_refused_with_how_to_write_it() {
    let seed = &mut Seed::start();
    for name in ["", "*", "echo", "mcp__", "mcp__x", "mcp____x", "mcp__x__", "github.get_issue"] {
        let error = format!(
            "allowedTools: \"{name}\" is not the name of a tool; write it like \
             \"mcp__github__get_issue\" or \"mcp__github__*\""
        );
        let suggestion = "searchTools('words') and discoverMCPTools() in the code give the names";
        let expected = json!({"error": error, "errorType": "validation", "suggestion": suggestion});
        let arguments = json!({"code": "1", "allowedTools": ["mcp__time__*", name]});
        assert_eq!(seed.refused("executeTypescript", &arguments), expected);
    }
}

#[test]
fn the_bounds_themselves_are_allowed() {
    let seed = &mut Seed::start();
    let names: Vec<String> = (0..500).map(|n| format!("mcp__s__{n:0>192}")).collect();
    for more in [
        json!({"timeoutMs": 1000}),
        json!({"timeoutMs": 300_000.0}),
        json!({"allowedTools": names}),
        json!({"permissions": {"read": [], "write": [], "net": []}}),
        json!({"enableSampling": false, "maxSamplingRounds": 100, "maxSamplingTokens": 100_000}),
        json!({"maxSamplingRounds": 1, "maxSamplingTokens": 100, "samplingSystemPrompt": "p"}),
        json!({"allowedSamplingModels": ["m"], "skipDangerousPatternCheck": false}),
        json!({"allowedTools": null, "timeoutMs": null, "permissions": null}),
    ] {
        let mut arguments = more;
        arguments["code"] = json!("1 + 1");
        for tool in ["executeTypescript", "executePython"] {
            assert_eq!(seed.done(tool, &arguments), "2", "{arguments:.200}");
        }
    }
}

#[test]
fn health_takes_nothing_and_says_what_was_promised() {
    let seed = &mut Seed::start();
    let expected = json!({"error": "x: unknown; no fields are allowed", "errorType": "validation"});
    assert_eq!(seed.refused("health", &json!({"x": 1})), expected);
    let mut result = seed.call("health", &json!({}));
    let mut health = result["structuredContent"].take();
    let text = result["content"][0]["text"].as_str().expect("text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), health);
    assert!(health["uptime"].take().as_f64().is_some_and(|seconds| seconds > 0.0));
    assert!(health["timestamp"].take().as_str().is_some_and(|text| text.ends_with('Z')));
    assert_eq!(
        health,
        json!({
            "healthy": true,
            "auditLog": {"enabled": false},
            "mcpClients": {"connected": 0},
            "connectionPool": {"active": 0, "waiting": 0, "max": 100},
            "uptime": null,
            "timestamp": null,
        })
    );
}
