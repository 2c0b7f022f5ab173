use codexec_types::{Grants, Limits, ToolFilter, WorkingDirPolicy};

use super::*;

fn policy() -> Policy {
    Policy {
        languages: Language::ALL.to_vec(),
        code_bytes: 1_000,
        input_bytes: 1_000,
        limits: Limits { tool_calls: 50, ..Limits::DEFAULT },
        max_wall: Duration::from_secs(300),
        tools: ToolFilter::all(),
        grants: Grants::default(),
        files: WorkingDirPolicy::default(),
    }
}

/// Checks what the options result in: milliseconds, calls, servers.
#[track_caller]
fn check(options: &Value, settings: &ProxySettings, expected: &str) {
    let args = json!({"code": "1", "options": options});
    let read = CodeExecutionArguments::read(
        args.as_object().cloned().unwrap_or_default(),
        settings,
        &policy(),
    );
    let actual = match read {
        Ok(CodeExecutionArguments { asked, .. }) => format!(
            "{} ms, calls {:?}, servers {:?}",
            asked.wall.unwrap_or_default().as_millis(),
            asked.tool_calls,
            asked.allowed_servers
        ),
        Err(refused) => format!("{}: {}", refused.code, refused.message),
    };
    assert_eq!(actual, expected, "{options}");
}

#[test]
fn options_narrow_what_the_settings_give() {
    let usual = ProxySettings::default();
    let set = ProxySettings {
        timeout: Duration::from_secs(9),
        max_tool_calls: Some(7),
        ..ProxySettings::default()
    };
    check(&Value::Null, &usual, "120000 ms, calls None, servers None");
    check(&json!({}), &set, "9000 ms, calls Some(7), servers None");
    check(
        &json!({"timeout_ms": 1, "max_tool_calls": 3}),
        &set,
        "1 ms, calls Some(3), servers None",
    );
    // No limit of its own; the policy's limit remains.
    check(&json!({"max_tool_calls": 0}), &set, "9000 ms, calls None, servers None");
    let none = ProxySettings { max_tool_calls: Some(0), ..usual.clone() };
    check(&json!({}), &none, "120000 ms, calls None, servers None");
    check(&json!({"max_tool_calls": 51}), &usual, "120000 ms, calls Some(50), servers None");
    check(&json!({"timeout_ms": 600_000}), &usual, "300000 ms, calls None, servers None");
    check(&json!({"allowed_servers": []}), &usual, "120000 ms, calls None, servers None");
    let one = "120000 ms, calls None, servers Some([\"a\"])";
    check(&json!({"allowed_servers": ["a"]}), &usual, one);
}

#[test]
fn errors_name_options_that_are_out_of_range() {
    let usual = ProxySettings::default();
    for bad in [json!(0), json!(600_001), json!(-1), json!(1.5), json!("1")] {
        let said = format!(
            "INVALID_ARGS: options.timeout_ms: {bad} is not allowed; it must be a whole number \
             from 1 to 600000"
        );
        check(&json!({"timeout_ms": bad}), &usual, &said);
    }
    let said = "INVALID_ARGS: options.max_tool_calls: -1 is not allowed; it must be a whole number \
                from 0 to 4294967295";
    check(&json!({"max_tool_calls": -1}), &usual, said);
    let said = "INVALID_ARGS: options.allowed_servers: \"a\" is not allowed; it must be an array \
                of strings";
    check(&json!({"allowed_servers": "a"}), &usual, said);
    let said = "INVALID_ARGS: options.max_parallel: unknown; allowed fields: timeout_ms, \
                max_tool_calls, allowed_servers";
    check(&json!({"max_parallel": 3}), &usual, said);
    let said = "INVALID_ARGS: options: [] is not allowed; it must be an object";
    check(&json!([]), &usual, said);
}
