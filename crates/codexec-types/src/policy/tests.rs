use super::*;
use crate::Grant;

fn policy() -> Policy {
    Policy {
        languages: vec![Language::TypeScript],
        code_bytes: 20,
        input_bytes: 10,
        limits: Limits::DEFAULT,
        max_wall: Duration::from_secs(300),
        tools: ToolFilter::all(),
        grants: Grants::default(),
        files: WorkingDirPolicy::default(),
    }
}

fn request(code: &str) -> AdmissionRequest {
    AdmissionRequest::new(Language::TypeScript, code.to_owned())
}

#[track_caller]
fn refused(request: AdmissionRequest, expected: &str) {
    let refusal = policy().admit(request, &[], None).expect_err("refused");
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
fn the_policy_fills_in_what_the_request_leaves_out() {
    let admitted = policy().admit(request("1"), &[], None).expect("admitted");
    assert_eq!(admitted.limits(), Limits::DEFAULT);
    assert_eq!(admitted.reach().callable(), &ToolFilter::all());
}

#[test]
fn an_empty_list_in_the_request_denies_everything() {
    let mut none = request("1");
    none.asked.allowed_tools = Some(vec![]);
    let admitted = policy().admit(none, &[], None).expect("admitted");
    assert!(!admitted.reach().callable().allows_server("fake"));
    let mut no_servers = request("1");
    no_servers.asked.allowed_servers = Some(vec![]);
    let admitted = policy().admit(no_servers, &[], None).expect("admitted");
    assert!(!admitted.reach().callable().allows_server("fake"));
}

fn in_dir(language: Language, path: &str) -> AdmissionRequest {
    let found = ResolvedDir { path: path.into(), device: 1, inode: 2, uid: 3, gid: 4 };
    AdmissionRequest { language, working_dir: Some(found), ..request("1") }
}

fn with_files() -> Policy {
    let files = WorkingDirPolicy {
        allowed: vec!["/home/ann/work".into(), "/srv".into()],
        forbidden: vec!["/home/ann/.ssh".into()],
        is_writable: true,
        home: None,
    };
    Policy { languages: Language::ALL.to_vec(), files, ..policy() }
}

#[track_caller]
fn dir_refused(policy: &Policy, request: AdmissionRequest, code: &str, expected: &str) {
    let refusal = policy.admit(request, &[], None).expect_err("refused");
    assert_eq!((refusal.code(), refusal.to_string().as_str()), (code, expected));
}

#[test]
fn a_working_dir_is_only_for_languages_that_have_files() {
    for language in [Language::TypeScript, Language::JavaScript] {
        dir_refused(
            &with_files(),
            in_dir(language, "/srv/data"),
            "INVALID_ARGS",
            &format!("working_dir: {language} code has no files; use python, bash or node"),
        );
    }
}

#[test]
fn a_working_dir_has_to_be_allowed() {
    dir_refused(
        &with_files(),
        in_dir(Language::Python, "/opt"),
        "WORKING_DIR_NOT_ALLOWED",
        "working_dir: /opt is not allowed; allowed: /home/ann/work, /srv and below; the user can \
         add it to `allowed` under [files] in config.toml",
    );
    for path in ["/home/ann/.ssh", "/home/ann/.ssh/keys", "/home/ann"] {
        dir_refused(
            &with_files(),
            in_dir(Language::Bash, path),
            "WORKING_DIR_NOT_ALLOWED",
            &format!("working_dir: {path} may never be used: /home/ann/.ssh is private"),
        );
    }
    let none = Policy { languages: Language::ALL.to_vec(), ..policy() };
    dir_refused(
        &none,
        in_dir(Language::Node, "/srv"),
        "WORKING_DIR_NOT_ALLOWED",
        "working_dir: /srv is not allowed; no directory is; the user can add it to `allowed` \
         under [files] in config.toml",
    );
}

#[test]
fn an_allowed_working_dir_is_admitted_unchanged() {
    let mut policy = with_files();
    for (language, is_writable) in
        [(Language::Python, true), (Language::Bash, false), (Language::Node, true)]
    {
        policy.files.is_writable = is_writable;
        let request = in_dir(language, "/home/ann/work/project");
        let found = request.working_dir.clone().expect("set above");
        let admitted = policy.admit(request, &[], None).expect("admitted");
        let allowed = "/home/ann/work".into();
        assert_eq!(admitted.working_dir(), Some(&WorkingDir { found, is_writable, allowed }));
    }
    let admitted = policy.admit(request("1"), &[], None).expect("admitted");
    assert_eq!(admitted.working_dir(), None);
}

/// Returns the grants that a policy with `may` gives a request with these tools.
fn granted(may: &[Grant], allowed_tools: Option<&[&str]>) -> Vec<&'static str> {
    let policy = Policy { grants: may.iter().copied().collect(), ..policy() };
    let allowed_tools = allowed_tools.map(|list| list.iter().map(|&p| p.to_owned()).collect());
    let asked = RequestedLimits { allowed_tools, ..RequestedLimits::default() };
    let admitted =
        policy.admit(AdmissionRequest { asked, ..request("1") }, &[], None).expect("admitted");
    admitted.reach().grants().iter().map(Grant::name).collect()
}

#[test]
fn own_4_a_grant_must_be_named_and_no_wildcard_gives_one() {
    for list in [&["*"][..], &["codexec.*"], &["codexec.scripts.*"], &["*.scripts.replace"], &[]] {
        assert_eq!(granted(&[], Some(list)), [""; 0], "{list:?}");
    }
    assert_eq!(granted(&[], None), [""; 0]);
    for list in [["*", "codexec.scripts.replace"], ["github.*", "mcp__codexec__scripts.replace"]] {
        assert_eq!(granted(&[], Some(&list)), ["scripts.replace"], "{list:?}");
    }
    let may = [Grant::AllLogs, Grant::AllSessions];
    assert_eq!(granted(&may, None), ["sessions.all", "logs.all"]);
    // A request that narrows tools also narrows the grants of the settings.
    assert_eq!(granted(&may, Some(&["codexec.*"])), ["sessions.all", "logs.all"]);
    assert_eq!(granted(&may, Some(&["github.*", "codexec.get_script"])), [""; 0]);
    assert_eq!(granted(&may, Some(&["codexec.logs.all"])), ["logs.all"]);
}

#[test]
fn own_4_nested_code_has_the_grants_of_its_outer_code() {
    let inner = |outer: &[Grant], allowed_tools: Option<&[&str]>| {
        let allowed_tools = allowed_tools.map(|list| list.iter().map(|&p| p.to_owned()).collect());
        let asked =
            RequestedLimits { allowed_tools, tool_calls: Some(7), ..RequestedLimits::default() };
        let outer = Policy { grants: outer.iter().copied().collect(), ..policy() };
        let outer = outer.admit(request("1"), &[], None).expect("admitted");
        let outer = OuterLimits { reach: outer.reach(), wall: Duration::MAX, tool_calls: 5 };
        let inner = AdmissionRequest { asked, ..request("1") };
        let admitted = policy().admit(inner, &[], Some(outer)).expect("admitted");
        assert_eq!(admitted.limits().tool_calls, 5);
        admitted.reach().grants().iter().map(Grant::name).collect::<Vec<_>>()
    };
    assert_eq!(inner(&[], Some(&["*", "codexec.logs.all"])), [""; 0]);
    assert_eq!(inner(&[Grant::AllLogs], None), ["logs.all"]);
    assert_eq!(inner(&[Grant::AllLogs], Some(&["github.*"])), [""; 0]);
}

#[test]
fn every_grant_has_a_unique_name() {
    for grant in Grant::ALL {
        assert_eq!(Grant::parse(grant.name()), Some(grant));
        assert_eq!([grant].into_iter().collect::<Grants>().iter().collect::<Vec<_>>(), [grant]);
    }
    assert_eq!(Grant::ALL.into_iter().collect::<Grants>().iter().count(), Grant::ALL.len());
}
