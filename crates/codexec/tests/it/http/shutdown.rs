//! The end of a busy server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use super::server::{Server, exists, parse_answer, read_answer, terminate};
use super::{LEGACY, call, hello};
use crate::attacks::host::{AFTERMATH, cgroups, is_alive, mounts, within};
use crate::support::{PATIENCE, descendants};

const EXECUTIONS: usize = 50;

#[test]
fn sigterm_under_load_answers_everybody_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    let socket = folder.path().join("codexec.sock");
    let settings = "[workers]\nmax = 60\n\n[http]\ngrace-s = 2\nconnections-per-peer = 200\n";
    let mut server = Server::with(settings, &json!({}), |command| {
        command.args(["--http", "127.0.0.1:0", "--stdio", "--socket"]).arg(&socket);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
    });
    let token = server.token.clone();
    server.wait_until_ready();
    // Executions that never end by themselves, over HTTP in both eras, and over stdio.
    let endless = |n: usize| call(&format!("echo begun; sleep {}", 50_000 + n), "bash");
    let mut running: Vec<TcpStream> = (0..EXECUTIONS - 1)
        .map(|n| server.open_single("/mcp", &token, "tools/call", endless(n)))
        .collect();
    let opened = server.post("/mcp", &token, &[], &hello());
    let id = opened.header("mcp-session-id").expect("a session").to_owned();
    let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", LEGACY)];
    let request = |params: Value| json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    running.push(server.open_post("/mcp", &token, &headers, &request(endless(EXECUTIONS))));
    let bearer = format!("Bearer {token}");
    let listening =
        [("Authorization", bearer.as_str()), ("Accept", "text/event-stream"), headers[0]];
    let mut listener = server.open("GET", "/mcp", &listening, "");
    let mut first = [0; 12];
    listener.read_exact(&mut first).expect("a stream");
    let mut stdin = server.child.stdin.take().expect("piped");
    let mut stdout = BufReader::new(server.child.stdout.take().expect("piped")).lines();
    writeln!(stdin, "{}", hello()).expect("written");
    stdout.next().expect("an answer").expect("a line");
    let started = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    writeln!(stdin, "{started}\n{}", request(endless(EXECUTIONS + 1))).expect("written");
    let pid = server.child.id();
    let count_sleepers = || {
        let is_sleeper = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.strip_prefix(b"sleep\0").is_some_and(|rest| rest.starts_with(b"5"))
        };
        descendants(pid).iter().filter(|pid| is_sleeper(pid)).count()
    };
    assert!(within(PATIENCE, || count_sleepers() == EXECUTIONS + 1), "{}", count_sleepers());
    let family = descendants(pid);
    terminate(&server);
    for stream in running {
        let answer = read_answer(stream);
        let result = &answer.message()["result"];
        assert_eq!((answer.status, &result["isError"]), (200, &json!(true)), "{answer:?}");
    }
    let said = stdout.next().expect("an answer").expect("a line");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((&said["id"], &said["result"]["isError"]), (&json!(2), &json!(true)), "{said}");
    let mut rest = Vec::new();
    listener.read_to_end(&mut rest).expect("the end of the stream");
    assert_eq!(parse_answer(&String::from_utf8_lossy(&[&first[..], &rest].concat())).status, 200);
    assert!(server.child.wait().expect("it ends").success());
    assert!(within(AFTERMATH, || family.iter().all(|pid| !is_alive(*pid))), "processes are left");
    assert_eq!(cgroups(pid), Vec::<std::path::PathBuf>::new());
    assert_eq!(mounts(), Vec::<String>::new());
    assert!(!exists(&socket) && TcpStream::connect(&server.authority).is_err());
}
