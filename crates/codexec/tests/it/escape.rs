//! Getting out, tried: by a guest of ours that knows every system call, by JavaScript, by names,
//! by upstreams and by clients. Ids are those of docs/threats.md.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::attacks::bench::Bench;
use crate::attacks::host::{AFTERMATH, Sandbox, cpu_ticks, is_alive, status, within};
use crate::attacks::recorder::Recorders;
use crate::support::{Client, PATIENCE, command};

/// What the probe tries, by the threat that it stands for.
const FILES: &[&str] = &[
    "read /etc/passwd",
    "read /proc/self/environ",
    "read /proc/1/cmdline",
    "read /sys/kernel/mm",
    "read /dev/null",
    "list /",
    "write /tmp/x",
];
const PROCESSES: &[&str] = &["ptrace", "process_vm_readv", "kill(-1)", "pidfd_open(1)"];
const CALLS: &[&str] = &[
    "unshare(user)",
    "clone(user)",
    "clone3",
    "fork",
    "execve",
    "mount",
    "pivot_root",
    "setns",
    "bpf",
    "io_uring_setup",
    "keyctl",
    "perf_event_open",
    "userfaultfd",
    "memfd_create",
    "chroot",
    "prctl",
    "mmap(PROT_EXEC)",
];
const PRIVILEGES: &[&str] = &["setuid(0)"];
const NETWORK: &[&str] = &["socket(AF_INET)", "socket(AF_UNIX)", "socket(AF_VSOCK)"];

fn doctor() -> Value {
    let home = tempfile::tempdir().expect("a directory");
    let output = command(home.path()).args(["doctor", "--json"]).output().expect("codexec runs");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Each of these was tried in a real worker, and blocked.
#[track_caller]
fn blocked(expected: &[&str]) {
    let report = doctor();
    let attempts = report["sandbox"]["attempts"].as_array().expect("attempts");
    for what in expected {
        let attempt = attempts.iter().find(|attempt| attempt["what"] == *what);
        let attempt = attempt.unwrap_or_else(|| panic!("nobody tried: {what}"));
        let by = attempt["blocked_by"].as_str();
        assert!(by.is_some_and(|by| !by.is_empty()), "it worked: {what}");
    }
}

/// A server whose one guest loops; gives the worker it runs in.
fn looping() -> (Client, u32) {
    let mut client = Client::start(&json!({}));
    client.send_call("execute_code", &json!({"code": "while (true) {}"}));
    let server = client.child.id();
    let mut busy = None;
    let is_busy = within(PATIENCE, || {
        busy = Sandbox::of(server).workers.into_iter().find(|pid| cpu_ticks(*pid) >= 10);
        busy.is_some()
    });
    assert!(is_busy, "no worker is busy");
    (client, busy.expect("busy"))
}

/// Only root may look into a process that made itself unreadable. The run as root sees it; the
/// run as a plain user says what it did not see.
fn may_look() -> bool {
    let is_root = status(std::process::id(), "Uid").is_some_and(|ids| ids.starts_with('0'));
    if !is_root {
        let _ = writeln!(std::io::stderr(), "NOT SEEN: only root may look into a worker");
    }
    is_root
}

#[track_caller]
fn check(code: &str, expected: &str) {
    assert_eq!(Client::start(&json!({})).run(code).fine(), expected);
}

/// THREAT[ESC-1]
#[test]
fn esc_1_nothing_can_be_imported() {
    let code = r#"
        const names = ["fs", "node:fs", "std", "os", "file:///etc/passwd", "./x.js", "data:,1"];
        const tried = await Promise.allSettled(names.map((name) => import(name)));
        return tried.map((one) => one.status).join()
    "#;
    check(code, &["rejected"; 7].join(","));
}

#[test]
fn esc_1_constructors_give_no_other_realm() {
    let code = r#"
        const things = [console, callTool, tools.x, new URL("a:b"), setTimeout, input, structuredClone];
        const realms = things.map((it) => it?.constructor?.constructor?.("return globalThis")());
        return realms.every((realm) => realm === undefined || realm === globalThis)
    "#;
    check(code, "true");
}

#[test]
fn esc_1_there_are_no_host_objects() {
    let code = r#"
        const names = ["process", "require", "module", "Deno", "Bun", "std", "os", "fetch", "Worker",
            "WebAssembly", "XMLHttpRequest", "WebSocket", "scriptArgs", "print"];
        return names.filter((name) => name in globalThis)
    "#;
    check(code, "[]");
}

/// THREAT[ESC-2]
#[test]
fn esc_2_files_of_the_host_are_out_of_reach() {
    blocked(FILES);
}

#[test]
fn esc_2_the_root_of_a_worker_is_empty() {
    let (_client, worker) = looping();
    if may_look() {
        let root = std::fs::read_dir(format!("/proc/{worker}/root")).expect("root may look");
        assert_eq!(root.count(), 0);
    }
    // Anybody may ask; for others than root the answer is a refusal, which will do.
    assert!(!Path::new(&format!("/proc/{worker}/root/etc")).exists());
}

/// THREAT[ESC-3]
#[test]
fn esc_3_processes_of_the_host_are_out_of_reach() {
    blocked(PROCESSES);
}

#[test]
fn esc_3_a_worker_is_the_first_of_its_own_processes() {
    let (_client, worker) = looping();
    let ids = status(worker, "NSpid").expect("it lives");
    assert_eq!(ids.split_whitespace().last(), Some("1"), "{ids}");
}

/// THREAT[ESC-4]
#[test]
fn esc_4_dangerous_calls_are_refused() {
    blocked(CALLS);
}

#[test]
fn esc_4_the_probe_tries_what_we_think_it_tries() {
    let report = doctor();
    let attempts = report["sandbox"]["attempts"].as_array().expect("attempts");
    let tried: BTreeSet<&str> = attempts.iter().filter_map(|a| a["what"].as_str()).collect();
    let known = [FILES, PROCESSES, CALLS, PRIVILEGES, NETWORK].concat();
    assert_eq!(tried, known.into_iter().collect());
}

#[test]
fn esc_4_every_layer_is_in_force() {
    let missing = &doctor()["sandbox"]["missing"];
    let missing = missing.as_array().expect("a list").iter().map(|one| one["layer"].clone());
    // A plain user need not have been given a cgroup.
    let unexpected: Vec<Value> = missing.filter(|name| may_look() || name != "cgroup").collect();
    assert_eq!(unexpected, Vec::<Value>::new());
}

/// THREAT[ESC-5]
#[test]
fn esc_5_privileges_cannot_be_regained() {
    blocked(PRIVILEGES);
}

#[test]
fn esc_5_a_worker_has_no_privileges() {
    let (_client, worker) = looping();
    let is = |name: &str| status(worker, name).expect("it lives");
    for capabilities in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(is(capabilities), "0000000000000000", "{capabilities}");
    }
    assert_eq!(
        (is("NoNewPrivs"), is("Seccomp"), is("Threads")),
        ("1".into(), "2".into(), "1".into())
    );
    assert!(!is("Uid").split_whitespace().any(|id| id == "0"), "{}", is("Uid"));
    assert!(!is("Gid").split_whitespace().any(|id| id == "0"), "{}", is("Gid"));
}

#[test]
fn esc_5_a_worker_inherits_one_socket_and_no_environment() {
    let (_client, worker) = looping();
    if !may_look() {
        // Not even its own user may: that is a wall too.
        assert!(std::fs::read_dir(format!("/proc/{worker}/fd")).is_err());
        return;
    }
    let open = std::fs::read_dir(format!("/proc/{worker}/fd")).expect("root may look").flatten();
    let target = |path| std::fs::read_link(path).unwrap_or_default().display().to_string();
    let mut targets: Vec<String> = open.map(|entry| target(entry.path())).collect();
    targets.retain(|target| !target.ends_with("/null"));
    assert!(matches!(&targets[..], [one] if one.starts_with("socket:")), "{targets:?}");
    let environment = std::fs::read(format!("/proc/{worker}/environ")).expect("root may look");
    let environment = String::from_utf8_lossy(&environment);
    // A guest's local time is not the host's.
    assert_eq!(environment.replace("TZ=UTC\0", ""), "");
}

#[test]
fn esc_5_a_worker_shares_no_namespace_with_the_server() {
    let (client, worker) = looping();
    if !may_look() {
        return;
    }
    let link = |pid: u32, name: &str| std::fs::read_link(format!("/proc/{pid}/ns/{name}"));
    for name in ["user", "pid", "mnt", "net", "ipc", "uts", "cgroup"] {
        let (ours, theirs) = (link(client.child.id(), name), link(worker, name));
        assert_ne!(ours.expect("readable"), theirs.expect("readable"), "{name}");
    }
}

/// THREAT[NET-1]
#[test]
fn net_1_there_are_no_sockets() {
    blocked(NETWORK);
}

#[test]
fn net_1_the_network_of_a_worker_is_empty() {
    let (_client, worker) = looping();
    if may_look() {
        let text = std::fs::read_to_string(format!("/proc/{worker}/net/dev")).expect("readable");
        let names: Vec<&str> =
            text.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
        assert_eq!(names, ["lo"]);
    }
}

/// THREAT[LEAK-1]
#[test]
fn leak_1_globals_and_prototypes_are_fresh_each_time() {
    let mut client = Client::start(&json!({}));
    let dirty = r#"
        globalThis.left = 1; Object.prototype.left = 1; Array.prototype.includes = () => true;
        Promise.prototype.then = null; tools.left = 1; console.log = 0; JSON.stringify = () => "{}";
        return 1
    "#;
    for _ in 0..20 {
        client.run(dirty);
        let look = "return [typeof left, ({}).left, [].includes(1), typeof console.log, JSON.stringify([])]";
        assert_eq!(client.run(look).fine(), r#"["undefined",null,false,"function","[]"]"#);
    }
}

#[test]
fn leak_1_no_two_executions_draw_the_same_numbers() {
    let mut client = Client::start(&json!({}));
    let draw = "return Math.random() + ' ' + crypto.randomUUID()";
    let drawn: Vec<String> = (0..30).map(|_| client.run(draw).fine()).collect();
    let parts = drawn.iter().flat_map(|text| text.split(' '));
    assert_eq!(parts.collect::<BTreeSet<_>>().len(), 60, "{drawn:?}");
}

/// THREAT[BRG-1]
#[test]
fn brg_1_an_ask_longer_than_a_frame_ends_no_more_than_its_guest() {
    let mut bench = Bench::start(&[("fake", json!({}))], "");
    let code = "try { await callTool('fake', '\\u0001'.repeat(5 << 20), {}) } catch (e) { return 'refused' }";
    let answered = bench.run(code, &Value::Null);
    assert!(answered.text == "refused" || answered.status == "fail", "{}", answered.text);
    assert_eq!(bench.recorders.calls("fake", None), []);
    assert_eq!(bench.run("return 6 * 7", &Value::Null).text, "42");
}

/// Runs code that may only call `fake.echo`, and gives what reached the upstreams besides that.
#[track_caller]
fn reached(code: &str, opts: &Value) -> Vec<String> {
    let servers = [("fake", json!({})), ("denied", json!({}))];
    let mut bench = Bench::start(&servers, "[tools]\nallowed = [\"fake.*\"]\n");
    let control = bench.run("return await callTool('fake', 'echo', {})", &Value::Null);
    assert_eq!(control.status, "ok", "the control: {}", control.text);
    assert_eq!(bench.recorders.calls("fake", None).len(), 1, "the control");
    bench.run(code, opts);
    let called = |server: &str| bench.recorders.calls(server, None).into_iter();
    let name = |server: &str| {
        let names = called(server).map(|one| format!("{server}.{}", one.tool.unwrap_or_default()));
        names.collect::<Vec<_>>()
    };
    [name("fake"), name("denied")].concat().into_iter().skip(1).collect()
}

const EVERY_WAY: &str = r#"
    const ways = [
        () => callTool("denied", "echo", {}), () => callTool("fake", "secret", {}),
        () => callMCPTool("denied.echo", {}), () => callMCPTool("mcp__fake__secret", {}),
        () => call_tool("denied", "echo", {}), () => call_tools([{server: "denied", tool: "echo"}]),
        () => call_tools([{name: "fake.secret"}]), () => tools.denied.echo({}), () => tools.fake.secret({}),
    ];
    for (const way of ways) try { await way() } catch {}
"#;

/// THREAT[POL-1]
#[test]
fn pol_1_what_is_not_allowed_is_not_called() {
    assert_eq!(reached(EVERY_WAY, &json!({"allowed_tools": ["fake.echo"]})), [""; 0]);
}

#[test]
fn pol_1_a_request_cannot_allow_more_than_the_settings() {
    let calls = reached(EVERY_WAY, &json!({"allowed_tools": ["*", "denied.*"]}));
    assert_eq!(calls, ["fake.secret"; 4]);
}

/// THREAT[POL-2]
#[test]
fn pol_2_names_are_not_coerced_or_respelt() {
    let code = r#"
        let n = 0;
        const flip = {toString: () => ++n % 2 ? "echo" : "secret", [Symbol.toPrimitive]: () => ++n % 2 ? "echo" : "secret"};
        const names = ["secret ", "SECRET", "secret\0", "secret\n", "se\u200bcret", "../secret", "echo/../secret", flip, ["secret"],
            new String("secret")];
        for (const name of names) {
            try { await callTool("fake", name, {}) } catch {}
            if (typeof name === "string") try { await callMCPTool("fake." + name, {}) } catch {}
            try { call_tool("fake", name, {}) } catch {}
        }
    "#;
    assert_eq!(reached(code, &json!({"allowed_tools": ["fake.echo"]})), [""; 0]);
}

/// THREAT[POL-3]
#[test]
fn pol_3_an_empty_list_lets_nothing_through() {
    let code = r#"
        for (const way of [() => callTool("fake", "echo", {}), () => tools.fake.echo({}), () => callMCPTool("fake.echo", {})])
            try { await way() } catch {}
    "#;
    assert_eq!(reached(code, &json!({"allowed_tools": []})), [""; 0]);
    assert_eq!(reached(code, &json!({"allowed_servers": []})), [""; 0]);
}

/// THREAT[CL-1]
#[test]
fn cl_1_a_line_without_end_is_dropped_and_answered() {
    let mut client = Client::start(&json!({}));
    client.write_bytes(&vec![b'x'; 9 << 20]);
    client.write_bytes(b"\n{not json\n\xff\xfe\n");
    client.ping();
    let codes: Vec<&Value> = client.others.iter().map(|reply| &reply["error"]["code"]).collect();
    assert_eq!(codes, [&json!(-32_600), &json!(-32_700), &json!(-32_700)]);
    assert_eq!(client.run("return 6 * 7").fine(), "42");
}

/// One call of `fake.echo`, or what it met.
fn call_of(plan: &Value) -> String {
    let mut bench = Bench::start(&[("fake", plan.clone())], "");
    let code = "try { return await callTool('fake', 'echo', {}) } catch (e) { return e.code }";
    let answered = bench.run(code, &json!({"timeout_ms": 20_000}));
    assert_eq!(bench.run("return 6 * 7", &Value::Null).text, "42");
    answered.text
}

/// THREAT[UP-1]
#[test]
fn up_1_garbage_and_endless_lines_fail_no_more_than_their_call() {
    let bytes = json!({"do": "raw_hex", "hex": "fffe00", "nl": true});
    let garbage = json!([{"do": "raw", "text": "Starting.."}, bytes]);
    let reply = json!({"do": "reply"});
    assert_eq!(call_of(&json!({"pre": garbage, "on": {"tools/call": [reply]}})), "replied");
    let endless = json!([{"do": "big_line", "mb": 50}, {"do": "hang"}]);
    assert_eq!(call_of(&json!({"on": {"tools/call": endless}})), "UPSTREAM_ERROR");
    let large = json!([{"do": "big_text", "mb": 20}]);
    assert_eq!(call_of(&json!({"on": {"tools/call": large}})), "UPSTREAM_ERROR");
}

/// THREAT[UP-2]
#[test]
fn up_2_endless_pages_and_huge_texts_are_bounded() {
    let schema = json!({"type": "object"});
    let echo = |text: &str| json!({"name": "echo", "description": text, "inputSchema": schema});
    let huge =
        json!({"tools": [echo(&"x".repeat(5 << 20))], "on": {"tools/call": [{"do": "reply"}]}});
    assert_eq!(call_of(&huge), "replied");
    let many: Vec<Value> = (0..5_000).map(|_| echo("again")).collect();
    let many = json!({"tools": many, "on": {"tools/call": [{"do": "reply"}]}});
    assert_eq!(call_of(&many), "replied");
    let endless = json!({"on": {"tools/list": [{"do": "pages", "n": "inf"}]}});
    assert_eq!(call_of(&endless), "TOOL_NOT_FOUND");
}

/// A server with an upstream that has a child and heeds nothing; and the two processes.
fn stubborn() -> (Client, [u32; 2]) {
    let folder = tempfile::tempdir().expect("a directory").keep();
    let pids = folder.join("pids");
    let recorders = Recorders::new(&folder);
    let entry = recorders.entry("fake", &json!({"ignore_eof": true, "grandchild": pids}));
    let mut client = Client::start(&json!({"fake": entry}));
    client.run("return await callTool('fake', 'echo', {})").fine();
    let text = std::fs::read_to_string(&pids).expect("written at its start");
    std::fs::remove_dir_all(&folder).expect("ours");
    let pids: Vec<u32> = text.split(' ').map(|pid| pid.parse().expect("a pid")).collect();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    (client, [pids[0], pids[1]])
}

#[track_caller]
fn assert_exited(pids: &[u32]) {
    let living = || pids.iter().copied().filter(|pid| is_alive(*pid)).collect::<Vec<_>>();
    let is_over = within(AFTERMATH, || living().is_empty());
    let left = living();
    for pid in &left {
        // Whatever the verdict, nothing of ours stays on this machine.
        let _ = std::process::Command::new("sh").args(["-c", &format!("kill -9 {pid}")]).status();
    }
    assert!(is_over, "still there: {left:?}");
}

/// A server with an upstream that has left a process in a session of its own; and that process.
fn with_daemon() -> (Client, u32) {
    let folder = tempfile::tempdir().expect("a directory").keep();
    let file = folder.join("daemon");
    let recorders = Recorders::new(&folder);
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let plan = json!({"daemon": file, "tools": [tool("echo"), tool("die")]});
    let entry = recorders.entry("fake", &plan);
    let mut client = Client::start(&json!({"fake": entry}));
    client.run("return await callTool('fake', 'echo', {})").fine();
    let pid = std::fs::read_to_string(&file).expect("written at its start");
    std::fs::remove_dir_all(&folder).expect("ours");
    let pid = pid.parse().expect("a pid");
    assert!(is_alive(pid), "{pid}");
    (client, pid)
}

/// THREAT[UP-20]
#[test]
fn up_20_a_daemon_of_an_upstream_ends_when_the_client_leaves() {
    let (mut client, pid) = with_daemon();
    assert_eq!(client.leave().code(), Some(0));
    assert_exited(&[pid]);
}

#[test]
fn up_20_a_daemon_of_an_upstream_ends_when_the_server_is_killed() {
    let (mut client, pid) = with_daemon();
    client.child.kill().expect("our child");
    client.child.wait().expect("our child");
    assert_exited(&[pid]);
}

#[test]
fn up_20_a_daemon_of_an_upstream_ends_with_the_upstream() {
    let (mut client, pid) = with_daemon();
    client.run("return await callTool('fake', 'die', {})").failed();
    assert_exited(&[pid]);
}

/// THREAT[UP-3]
#[test]
fn up_3_an_upstream_ends_with_all_it_started_when_the_client_leaves() {
    let (mut client, pids) = stubborn();
    assert_eq!(client.leave().code(), Some(0));
    assert_exited(&pids);
}

#[test]
fn up_3_an_upstream_ends_with_all_it_started_when_the_server_is_killed() {
    let (mut client, pids) = stubborn();
    client.child.kill().expect("our child");
    client.child.wait().expect("our child");
    assert_exited(&pids);
}
