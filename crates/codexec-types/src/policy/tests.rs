use super::*;

fn policy() -> Policy {
    Policy {
        languages: vec![Language::TypeScript],
        code_bytes: 20,
        input_bytes: 10,
        limits: Limits::DEFAULT,
        max_wall: Duration::from_secs(300),
        tools: ToolFilter::all(),
        files: Files::default(),
    }
}

fn request(code: &str) -> Request {
    Request {
        language: Language::TypeScript,
        code: code.to_owned(),
        input: Json::null(),
        working_dir: None,
        asked: Asked::default(),
    }
}

#[track_caller]
fn refused(request: Request, expected: &str) {
    let refusal = policy().admit(request, &[]).expect_err("refused");
    assert_eq!(refusal.to_string(), expected);
}

#[test]
fn every_refusal_names_the_field_and_what_is_allowed() {
    refused(request(" \n"), "code: it is empty; send at least one statement");
    refused(request(&"x".repeat(21)), "code: it has 21 bytes; at most 20 are allowed");
    refused(request("a\0b"), "code: it has a NUL character at byte 1; remove it");
    let mut wrong = request("1");
    wrong.language = Language::JavaScript;
    refused(wrong, "language: javascript is not enabled here; enabled: typescript");
    let mut long = request("1");
    long.input = Json::parse("[1,2,3,4,5,6]".to_owned()).expect("json");
    refused(long, "input: it has 13 bytes; at most 10 are allowed");
    for ms in [0, 300_001] {
        let mut timed = request("1");
        timed.asked.wall = Some(Duration::from_millis(ms));
        refused(timed, &format!("timeout_ms: {ms} is out of range; it must be 1 to 300000"));
    }
    let mut calls = request("1");
    calls.asked.tool_calls = Some(1_001);
    refused(calls, "max_tool_calls: 1001 is out of range; it must be 0 to 1000");
}

#[test]
fn what_was_not_asked_for_is_the_policys() {
    let admitted = policy().admit(request("1"), &[]).expect("admitted");
    assert_eq!(admitted.limits(), Limits::DEFAULT);
    assert_eq!(admitted.tools(), &ToolFilter::all());
}

#[test]
fn an_empty_list_in_the_request_denies_all() {
    let mut none = request("1");
    none.asked.allowed_tools = Some(vec![]);
    let admitted = policy().admit(none, &[]).expect("admitted");
    assert!(!admitted.tools().allows_server("fake"));
    let mut no_servers = request("1");
    no_servers.asked.allowed_servers = Some(vec![]);
    let admitted = policy().admit(no_servers, &[]).expect("admitted");
    assert!(!admitted.tools().allows_server("fake"));
}
