//! Load over HTTP, on loopback: many executions at once, then a mix of everything for minutes, with
//! samples of the server's memory.
//!
//! `cargo bench --bench soak -- --minutes 30` prints the samples; `-- --test` is a smoke test of
//! seconds. Ends with an error if a request was lost, a refusal came late, or something was left.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a load test may panic"
)]

#[path = "soak/burst.rs"]
mod burst;
#[path = "../tests/it/attacks/host.rs"]
#[expect(dead_code, reason = "the integration tests use the rest of this module")]
mod host;
#[path = "soak/mix.rs"]
mod mix;
#[path = "../tests/it/http/server.rs"]
#[expect(dead_code, reason = "the integration tests use the rest of this module")]
mod server;
#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "the integration tests use the rest of this module")]
mod support;

use std::io::Write as _;
use std::time::{Duration, Instant};

use host::{groups, memory_kib, open_files, within};
use serde_json::json;
use server::Server;
use support::descendants;

/// How long a server may take to end.
const MAX_END: Duration = Duration::from_secs(12);
/// Slots that a rush opened are closed after a while.
const SETTLING: Duration = Duration::from_secs(60);

/// A minimal MCP server whose only tool answers at once.
const ECHO: &str = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "0"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    else:
        r = {"content": [{"type": "text", "text": "1"}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}) + "\n")
    sys.stdout.flush()
"#;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_test = arguments.iter().any(|argument| argument == "--test");
    let minutes = arguments.iter().position(|argument| argument == "--minutes");
    let minutes = minutes.and_then(|at| arguments.get(at + 1)?.parse::<f64>().ok());
    let duration = match (minutes, is_test) {
        (Some(minutes), _) => Duration::from_secs_f64(minutes * 60.0),
        (None, true) => Duration::from_secs(2),
        (None, false) => Duration::from_secs(60),
    };
    let server = start();
    let before = settle(&server);
    say(&format!("at rest: {before:?}"));
    burst::run(&server, if is_test { 100 } else { 1_000 });
    expect_same(&server, &before);
    mix::run(&server, duration);
    expect_same(&server, &before);
    end_under_load(server);
    say("nothing is left");
}

/// Ends the server while it is busy. Every request is answered, and all processes end.
fn end_under_load(mut server: Server) {
    let params = |seconds: &str| {
        let code = format!("sleep {seconds}");
        json!({"name": "execute_code", "arguments": {"language": "bash", "code": code}})
    };
    let open = |seconds| server.open_single("/mcp", &server.token, "tools/call", params(seconds));
    let running: Vec<_> = (0..50).map(|n| open(if n % 2 == 0 { "2" } else { "600" })).collect();
    let is_running = |server: &Server| {
        let health = server.ask("GET", "/metrics", &[("X-API-Key", &server.token)], "").body;
        let lines = health.lines().filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            name.starts_with("codexec_executions_").then_some(())?;
            (!name.contains('{')).then(|| value.parse::<u64>().unwrap_or_default())
        });
        lines.sum::<u64>() >= 50
    };
    assert!(within(SETTLING, || is_running(&server)), "50 executions do not start");
    let family = descendants(server.child.id());
    let begun = Instant::now();
    server::terminate(&server);
    let answers: Vec<_> = running.into_iter().map(server::read_answer).collect();
    let status = server.child.wait().expect("it ends");
    let took = begun.elapsed();
    let answered = answers.iter().filter(|answer| answer.message()["result"].is_object()).count();
    say(&format!("SIGTERM with 50 executions: {answered} answered, {status} after {took:?}"));
    assert!(answered == 50 && status.success() && took < MAX_END, "{answers:?}");
    let is_over = || family.iter().all(|pid| !host::is_alive(*pid));
    assert!(within(SETTLING, is_over), "processes are left");
    let left = host::cgroups(server.child.id());
    assert!(left.is_empty(), "{left:?}");
}

fn start() -> Server {
    let folder = tempfile::tempdir().expect("a directory").keep();
    let script = folder.join("echo.py");
    std::fs::write(&script, ECHO).expect("written");
    let settings = "[http]\nconnections-per-peer = 4000\nrequests-per-minute = 1000000\n";
    let echo = json!({"command": "python3", "args": [script]});
    let server = Server::start(settings, &json!({"echo": echo}));
    server.wait_until_ready();
    // The first execution of each kind starts what all others share.
    for action in mix::ACTIONS {
        (action.run)(&server).unwrap_or_else(|error| panic!("{}: {error}", action.name));
    }
    server
}

/// What a server holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    processes: usize,
    open_files: usize,
    cgroups: usize,
}

impl Held {
    pub(crate) fn by(server: &Server) -> Held {
        let pid = server.child.id();
        Held {
            processes: descendants(pid).len(),
            open_files: open_files(pid),
            cgroups: groups(pid).unwrap_or_default(),
        }
    }

    /// Cgroups are used again; a server that was busy has some more of them. Its store has opened
    /// the index of searches and up to four readers, with three files each.
    fn is_within(&self, before: &Held) -> bool {
        self.processes <= before.processes && self.open_files <= before.open_files + 15
    }
}

/// Waits until the server no longer changes, and returns what it holds then.
fn settle(server: &Server) -> Held {
    let mut last = Held::by(server);
    let mut same = 0;
    within(SETTLING, || {
        std::thread::sleep(Duration::from_millis(100));
        let now = Held::by(server);
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same >= 120
    });
    last
}

fn expect_same(server: &Server, before: &Held) {
    let is_same = within(SETTLING, || Held::by(server).is_within(before));
    let after = Held::by(server);
    say(&format!("afterwards: {after:?}, {} KiB", memory_kib(server.child.id(), "VmRSS")));
    assert!(is_same, "something is left: {after:?}, before {before:?}");
}

pub(crate) fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("printed");
}
