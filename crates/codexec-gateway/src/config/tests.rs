use std::path::Path;

use super::*;

fn parsed(text: &str) -> Parsed {
    let env = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
    let scope = Scope {
        source: Path::new("f.json"),
        project_dir: Some(Path::new("/work/app")),
        own_exe: Path::new("/opt/bin/own"),
        is_named: false,
        env: &env,
    };
    parse(text, &scope)
}

fn program(server: &ServerConfig) -> &StdioConfig {
    match &server.transport {
        TransportConfig::Stdio(program) => program,
        TransportConfig::Remote(remote) => panic!("{remote:?}"),
    }
}

fn plain(secret: &Secret) -> &str {
    match secret {
        Secret::Plain(text) => text,
        Secret::Variable(_) | Secret::File(_) | Secret::Keyring(_) => panic!("{secret:?}"),
    }
}

#[track_caller]
fn check(text: &str, servers: &[&str], problems: &[&str]) {
    let parsed = parsed(text);
    let actual: Vec<String> = parsed
        .servers
        .iter()
        .map(|s| {
            let program = program(s);
            let env: Vec<(&str, &str)> =
                program.env.iter().map(|(key, value)| (key.as_str(), plain(value))).collect();
            format!("{}: {} {} {env:?}", s.name, program.command, program.args.join(" "))
        })
        .collect();
    assert_eq!(actual, servers);
    let actual: Vec<&str> = parsed.problems.iter().map(|problem| problem.what.as_str()).collect();
    assert_eq!(actual, problems);
}

#[test]
fn comments_commas_and_marks_are_borne() {
    check(
        "\u{feff}{ // ours\n \"mcpServers\": { /* one */ \"a\": { \"command\": \"x // y\", \"args\": [\"1\", 2,], }, }, }",
        &["a: x // y 1 2 []"],
        &[],
    );
    check("{}", &[], &[]);
    check("{", &[], &["it is not JSON: EOF while parsing an object at line 1 column 1"]);
}

#[test]
fn variables_are_expanded() {
    check(
        r#"{"mcpServers": {"a": {"command": "${HOME}/x", "args": ["${NO:-d}", "${NO}", "${"], "env": {"K": "${HOME}"}}}}"#,
        &[r#"a: /home/me/x d ${NO} ${ [("K", "/home/me")]"#],
        &["server \"a\": ${NO} is not set; set it, or write ${NO:-default}"],
    );
}

#[test]
fn a_bad_entry_hides_no_other() {
    check(
        r#"{"mcpServers": {"../x": {"command": "a"}, "b": 1, "c": {}, "d": {"url": "http://h"},
            "e": {"type": "sse", "url": "u"}, "f": {"command": "g", "args": "h"}, "ok": {"command": "z"}}}"#,
        &["ok: z  []"],
        &[
            "server name \"../x\" is not allowed; use 1 to 64 of the characters A-Z a-z 0-9 _ -",
            "server \"b\": its entry is not an object",
            "server \"c\": `command` is missing or empty; write the program that starts it",
            "server \"d\": it is reached over http, which is not supported yet; only stdio is",
            "server \"e\": it is reached over sse, which is not supported yet; only stdio is",
            "server \"f\": `args` must be a list of strings",
        ],
    );
}

#[test]
fn what_is_off_and_what_is_us_is_left_out() {
    check(
        r#"{"mcpServers": {"a": {"command": "x", "disabled": true}, "b": {"command": "x", "enabled": false},
            "c": {"command": "/usr/bin/codexec"}, "d": {"command": "npx", "args": ["-y", "codexec@1"]},
            "codexec": {"command": "/opt/bin/own"}, "e": {"command": "npx", "args": ["-y", "other", "codexec"]}}}"#,
        &["e: npx -y other codexec []"],
        &[],
    );
}

#[test]
fn the_projects_entry_wins() {
    check(
        r#"{"mcpServers": {"a": {"command": "user"}, "b": {"command": "user"}},
            "projects": {"/work/app": {"mcpServers": {"a": {"command": "local"}}},
                         "/work/other": {"mcpServers": {"c": {"command": "no"}}}}}"#,
        &["a: local  []", "b: user  []"],
        &[],
    );
}

#[test]
fn the_later_file_wins() {
    let user =
        parsed(r#"{"mcpServers": {"a": {"command": "1", "args": ["x"]}, "b": {"command": "1"}}}"#);
    let project = parsed(r#"{"mcpServers": {"c": {"command": "2"}, "a": {"command": "2"}}}"#);
    let all = merge(vec![user, project]);
    let actual: Vec<String> = all
        .servers
        .iter()
        .map(|s| format!("{} {} {:?}", s.name, program(s).command, program(s).args))
        .collect();
    assert_eq!(actual, ["a 2 []", "b 1 []", "c 2 []"]);
}
