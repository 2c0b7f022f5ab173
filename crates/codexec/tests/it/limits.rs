//! What an execution may not exceed, and that nothing of it stays: loops, memory, output, parsing,
//! cancellation, and the end of the server itself.

mod bombs;
mod memory;
mod settings;

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::attacks::bench::{Bench, rows};
use crate::attacks::host::{AFTERMATH, Sandbox, cgroups, cpu_ticks, is_alive, is_root, within};
use crate::support::{Client, PATIENCE, descendants};

/// What a ping may take beside a hostile guest, on a busy machine.
const PROMPT: Duration = Duration::from_secs(1);
/// Pings without a pause would leave the guest nothing of a small machine.
const BETWEEN_PINGS: Duration = Duration::from_millis(5);
/// This much processor time no waiting worker has used.
const BUSY_TICKS: u64 = 10;
const LOOP: &str = "while (true) {}";

/// Runs code that must be stopped: pings are answered meanwhile, the first line of the answer is
/// this, nothing is left, and the next execution works.
#[track_caller]
fn check(language: &str, code: &str, timeout_ms: u64, first_line: &str) {
    let mut bench = Bench::start(&[], "");
    let before = bench.before();
    let id = bench.send(language, code, &json!({"timeout_ms": timeout_ms}));
    let mut pings = Vec::new();
    while !bench.is_answered(id, BETWEEN_PINGS) {
        pings.push(bench.client.ping());
    }
    let answered = bench.answered(id);
    assert_eq!(answered.first_line(), first_line);
    let slowest = pings.iter().max().copied().unwrap_or_default();
    assert!(slowest < PROMPT, "a ping took {slowest:?}");
    assert_eq!(bench.left_behind(&before.sandbox.workers), None);
    assert_eq!(bench.run("return 6 * 7", &Value::Null).text, "42");
    assert_eq!(bench.broken_records(), Vec::<String>::new());
}

const TIMED_OUT: &str = "TIMEOUT: stopped after 1000 ms; do less, or ask for more with timeout_ms";
const TOO_MUCH_MEMORY: &str = "MEMORY_LIMIT: stopped: more than 512 MiB of memory";
const TOO_MUCH_OUTPUT: &str =
    "OUTPUT_LIMIT: stopped: more than 4194304 bytes of output; print less, return what matters";
const TOO_DEEP: &str = "the code is nested too deeply to be parsed";

/// THREAT[RES-1]
#[test]
fn res_1_an_endless_loop_is_stopped() {
    check("javascript", LOOP, 1000, TIMED_OUT);
}

#[test]
fn res_1_endless_microtasks_are_stopped() {
    check("typescript", "for (;;) await null;", 1000, TIMED_OUT);
}

#[test]
fn res_1_a_loop_that_catches_everything_is_stopped() {
    let code = "for (;;) { try { for (;;) {} } catch {} finally { continue } }";
    check("javascript", code, 1000, TIMED_OUT);
}

/// THREAT[RES-2]
#[test]
fn res_2_memory_without_end_is_stopped() {
    let code = "const all = []; for (;;) all.push('x'.repeat(1 << 20) + all.length);";
    check("javascript", code, 20_000, TOO_MUCH_MEMORY);
}

#[test]
fn res_2_memory_outside_the_engines_heap_is_stopped() {
    let code = "const all = []; for (;;) all.push(new Uint8Array(1 << 24).fill(1));";
    check("javascript", code, 20_000, TOO_MUCH_MEMORY);
}

#[test]
fn res_2_recursion_without_end_is_an_error_of_the_guests() {
    let code = "const f = (n) => f(n + 1) + 1;\nreturn f(0);";
    let line = "RUNTIME_ERROR: RangeError: Maximum call stack size exceeded";
    check("javascript", code, 20_000, line);
}

/// THREAT[RES-3]
#[test]
fn res_3_output_without_end_is_stopped() {
    check("javascript", "for (;;) console.log('x'.repeat(1000));", 20_000, TOO_MUCH_OUTPUT);
}

#[test]
fn res_3_errors_without_end_are_stopped() {
    check("javascript", "for (;;) console.error('x'.repeat(1000));", 20_000, TOO_MUCH_OUTPUT);
}

/// THREAT[RES-4]
#[test]
fn res_4_a_native_loop_is_stopped() {
    let code = "Array.prototype.indexOf.call({length: 4294967295}, 99);";
    check("javascript", code, 1000, TIMED_OUT);
}

/// THREAT[RES-5]
#[test]
fn res_5_deep_typescript_is_an_error_of_the_guests() {
    let code = format!("const x = {}1{};", "(".repeat(100_000), ")".repeat(100_000));
    check("typescript", &code, 20_000, &format!("TRANSPILE_ERROR: {TOO_DEEP}"));
}

#[test]
fn res_5_deep_javascript_is_an_error_of_the_guests() {
    let code = format!("const x = {}1{};", "(".repeat(100_000), ")".repeat(100_000));
    check("javascript", &code, 20_000, &format!("SYNTAX_ERROR: {TOO_DEEP}"));
}

#[test]
fn res_5_deep_blocks_are_an_error_of_the_guests() {
    let code = format!("{}{}", "{".repeat(100_000), "}".repeat(100_000));
    check("typescript", &code, 20_000, &format!("TRANSPILE_ERROR: {TOO_DEEP}"));
}

/// The worker that runs a loop.
#[track_caller]
fn busy_worker(server: u32) -> u32 {
    let mut busy = None;
    let is_found = within(PATIENCE, || {
        let workers = Sandbox::of(server).workers;
        busy = workers.into_iter().find(|pid| cpu_ticks(*pid) >= BUSY_TICKS);
        busy.is_some()
    });
    assert!(is_found, "no worker is busy");
    busy.expect("found")
}

#[track_caller]
fn assert_exited(pids: &[u32]) {
    let living = || pids.iter().copied().filter(|pid| is_alive(*pid)).collect::<Vec<_>>();
    assert!(within(AFTERMATH, || living().is_empty()), "still there: {:?}", living());
}

/// THREAT[RES-6]
#[test]
fn res_6_a_cancelled_loop_is_gone() {
    let mut client = Client::start(&json!({}));
    let id = client.send_call("execute_code", &json!({"code": LOOP}));
    let worker = busy_worker(client.child.id());
    let params = json!({"requestId": id, "reason": "enough"});
    client.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    assert_exited(&[worker]);
    assert_eq!(client.run("return 6 * 7").fine(), "42");
    let state = client.home.path().join("state");
    let sql = "select status, error_code from executions order by seq limit 1";
    assert_eq!(rows(&state, sql), [json!(["cancelled", "CANCELLED"])]);
}

#[test]
fn res_6_the_worker_is_gone_before_the_answer() {
    let mut client = Client::start(&json!({}));
    let code = json!({"code": LOOP, "timeout_ms": 1500});
    let id = client.send_call("execute_code", &code);
    let worker = busy_worker(client.child.id());
    client.wait_call(id).failed();
    assert!(!is_alive(worker), "the answer came before the end");
}

#[test]
fn res_6_all_is_gone_when_the_server_is_killed() {
    let mut client = Client::start(&json!({}));
    for _ in 0..3 {
        client.send_call("execute_code", &json!({"code": LOOP}));
    }
    let server = client.child.id();
    busy_worker(server);
    let below = descendants(server);
    assert!(below.len() >= 3, "{below:?}");
    client.child.kill().expect("our child");
    client.child.wait().expect("our child");
    assert_exited(&below);
}

#[test]
fn res_6_all_is_gone_when_the_server_is_asked_to_end() {
    let mut client = Client::start(&json!({}));
    client.send_call("execute_code", &json!({"code": LOOP}));
    let server = client.child.id();
    busy_worker(server);
    let below = descendants(server);
    terminate(server);
    let status = client.child.wait().expect("our child");
    assert_eq!(status.code(), Some(0), "{}", client.stderr());
    assert_exited(&below);
    assert!(within(AFTERMATH, || cgroups(server).is_empty()), "{:?}", cgroups(server));
    let state = client.home.path().join("state");
    let sql = "select status, error_code from executions";
    assert_eq!(rows(&state, sql), [json!(["cancelled", "CANCELLED"])]);
}

/// THREAT[RES-10]: longer than any machine needs to kill a process, and shorter than the SDK waits.
const AT_ONCE: Duration = Duration::from_secs(4);

#[test]
fn res_10_guests_end_at_once_when_the_client_leaves() {
    let mut client = Client::start(&json!({}));
    client.send_call("execute_code", &json!({"code": LOOP}));
    let python = json!({"language": "python", "code": "import time\ntime.sleep(29)"});
    client.send_call("execute_code", &python);
    let server = client.child.id();
    let worker = busy_worker(server);
    let state = client.home.path().join("state");
    let begun = "select count(*) from executions";
    assert!(within(PATIENCE, || rows(&state, begun) == [json!([2])]), "two executions");
    let left = Instant::now();
    client.close_input();
    assert!(within(PATIENCE, || !is_alive(worker)), "the worker runs on");
    let took = left.elapsed();
    assert!(took < AT_ONCE, "the guest ran on for {took:?}");
    assert_eq!(client.leave().code(), Some(0), "{}", client.stderr());
    let sql = "select distinct status, error_code from executions";
    assert_eq!(rows(&state, sql), [json!(["cancelled", "CANCELLED"])]);
}

/// THREAT[RES-11]
#[test]
fn res_11_no_cgroup_is_left_by_a_server_that_is_asked_to_end() {
    let mut client = Client::start(&json!({}));
    for (language, code) in [("python", "1"), ("bash", "true"), ("node", "1")] {
        client.call("execute_code", &json!({"language": language, "code": code})).fine();
    }
    let sleeping = json!({"language": "bash", "code": "sleep 29 & sleep 29"});
    client.send_call("execute_code", &sleeping);
    client.send_call("execute_code", &json!({"code": LOOP}));
    let server = client.child.id();
    busy_worker(server);
    assert_eq!(cgroups(server).is_empty(), !is_root(), "{:?}", cgroups(server));
    terminate(server);
    let status = client.child.wait().expect("our child");
    assert_eq!(status.code(), Some(0), "{}", client.stderr());
    // At once: whoever looks after the end finds nothing.
    assert_eq!(cgroups(server), Vec::<std::path::PathBuf>::new());
}

#[test]
fn res_11_what_a_killed_server_left_is_removed_by_the_next() {
    let mut first = Client::start(&json!({}));
    first.send_call("execute_code", &json!({"code": LOOP}));
    let server = first.child.id();
    let below = descendants(server);
    busy_worker(server);
    first.child.kill().expect("our child");
    first.child.wait().expect("our child");
    assert_exited(&below);
    assert_eq!(cgroups(server).is_empty(), !is_root(), "{:?}", cgroups(server));
    let mut second = Client::start(&json!({}));
    assert_eq!(second.run("return 6 * 7").fine(), "42");
    assert_eq!(cgroups(server), Vec::<std::path::PathBuf>::new());
}

#[test]
fn res_6_what_a_killed_server_ran_is_marked_by_the_next() {
    let mut first = Client::start(&json!({}));
    first.send_call("execute_code", &json!({"code": LOOP}));
    busy_worker(first.child.id());
    first.child.kill().expect("our child");
    first.child.wait().expect("our child");
    let state = first.home.path().join("state");
    let mut second = Client::with(&json!({}), |command| {
        command.env("CODEXEC_HOME", &state);
    });
    assert_eq!(second.run("return 6 * 7").fine(), "42");
    let sql = "select status, error_code from executions order by seq limit 1";
    assert_eq!(rows(&state, sql), [json!(["failed", "interrupted"])]);
}

#[test]
fn more_executions_than_workers_are_all_answered() {
    let mut client = Client::start(&json!({}));
    let send = |n: u64| {
        let code = format!("await new Promise((wake) => setTimeout(wake, 20));\nreturn {n}");
        client.send_call("execute_code", &json!({"code": code}))
    };
    let sent: Vec<u64> = (0..40).map(send).collect();
    let answers: Vec<String> = sent.iter().map(|id| client.wait_call(*id).fine()).collect();
    let expected: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    assert_eq!(answers, expected);
}

fn terminate(pid: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -TERM {pid}")]).status();
    assert!(sent.expect("sh runs").success());
}
