//! Measures the promised numbers over a real pipe or socket to the built binary, next to
//! alternatives.
//!
//! `cargo bench` prints a table, `-- --json` prints JSON, and `-- --test` runs everything twice
//! as a smoke test. Compare ratios, not absolute times: machines differ.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic"
)]

#[path = "stdio/asks.rs"]
mod asks;
#[path = "stdio/directory.rs"]
mod directory;
#[path = "stdio/http.rs"]
mod http;
#[path = "stdio/languages.rs"]
mod languages;
#[path = "../tests/it/http/server.rs"]
#[expect(dead_code, reason = "the integration tests use the rest of this module")]
mod server;
#[path = "stdio/sessions.rs"]
mod sessions;
#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "the integration tests use the rest of this module")]
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Client, descendants};

/// A minimal MCP server that answers every tool call at once: the lower bound for an upstream.
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

struct Bench {
    rounds: usize,
    rows: Vec<BenchRow>,
}

struct BenchRow {
    what: &'static str,
    value: f64,
    unit: &'static str,
    aim: Option<f64>,
    p95: Option<f64>,
    note: String,
}

type Measure = fn(&mut Bench);

/// The groups of rows. `cargo bench -- languages directory` measures two of them.
const GROUPS: [(&str, Measure); 12] = [
    ("startup", Bench::startup),
    ("executions", Bench::executions),
    ("asks", Bench::asks),
    ("refusals", Bench::refusals),
    ("calls", Bench::calls),
    ("throughput", Bench::throughput),
    ("http", Bench::http),
    ("memory", Bench::memory),
    ("sessions", Bench::sessions),
    ("languages", Bench::languages),
    ("directory", Bench::directory),
    ("alternatives", Bench::alternatives),
];

fn main() {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    let rounds = if has("--test") { 2 } else { 200 };
    let mut bench = Bench { rounds, rows: Vec::new() };
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (name, measure) in GROUPS {
        if chosen.is_empty() || chosen.iter().any(|chosen| chosen == name) {
            measure(&mut bench);
        }
    }
    bench.print(has("--json"));
}

impl Bench {
    fn startup(&mut self) {
        let hung = json!({"command": "sleep", "args": ["600"]});
        let missing = json!({"command": "/does/not/exist"});
        let mut ten = serde_json::Map::new();
        for index in 0..10 {
            let entry = if index == 0 { &hung } else { &missing };
            ten.insert(format!("s{index}"), entry.clone());
        }
        for (what, servers) in [
            ("start to `initialize` reply, 0 upstreams", json!({})),
            ("start to `initialize` reply, 10 upstreams, one hung", Value::Object(ten)),
        ] {
            let times = sample(self.rounds.min(30), || drop(Client::start(&servers)));
            // Dropping the client kills the server; that is less than a tenth of the time.
            self.push_times(what, &times, Some(20.0), String::new());
        }
    }

    fn executions(&mut self) {
        let mut client = Client::start(&json!({}));
        warm(&mut client);
        let ping = sample(self.rounds, || {
            client.ping();
        });
        self.push_times("`ping` alone", &ping, None, String::new());
        for (what, language) in [
            ("TypeScript `1+1`, fresh isolated guest", "typescript"),
            ("JavaScript `1+1`, fresh isolated guest", "javascript"),
        ] {
            let call = json!({"language": language, "code": "1+1"});
            let times = sample(self.rounds, || {
                assert_eq!(client.call("execute_code", &call).fine(), "2");
            });
            self.push_times(what, &times, Some(2.0), String::new());
        }
        let loops: Vec<u64> = (0..8)
            .map(|_| {
                client.send_call(
                    "execute_code",
                    &json!({"code": "while(true){}", "timeout_ms": 2000}),
                )
            })
            .collect();
        let pings = sample(self.rounds.min(100), || {
            client.ping();
        });
        self.push_row(
            "`ping` while 8 guests loop, p99",
            ms(percentile(&pings, 99)),
            "ms",
            Some(50.0),
            format!("median {:.2} ms", ms(median(&pings))),
        );
        for id in loops {
            client.wait_call(id).failed();
        }
    }

    /// Measures an upstream alone and behind codexec, alternating, so that other load affects both.
    fn calls(&mut self) {
        let home = tempfile::tempdir().expect("a directory");
        let script = home.path().join("echo.py");
        fs::write(&script, ECHO).expect("written");
        let mut direct = DirectUpstream::start(&script);
        let entry = json!({"command": "python3", "args": [script]});
        let mut client = Client::start(&json!({"echo": entry}));
        warm(&mut client);
        client.run("await tools.echo.echo({})").fine();
        let codes = [
            "0",
            "await tools.echo.echo({})",
            "for (let i = 0; i < 100; i++) await tools.echo.echo({})",
            "for (let i = 0; i < 1000; i++) await tools.echo.echo({})",
            "await Promise.all(Array.from({length: 100}, () => tools.echo.echo({})))",
        ];
        let mut alone = Vec::new();
        let mut times = codes.map(|_| Vec::new());
        for _ in 0..(self.rounds / 8).max(1) {
            alone.extend((0..100).map(|_| direct.round_trip()));
            for (code, times) in codes.iter().zip(&mut times) {
                times.extend(sample(1, || drop(client.run(code).fine())));
            }
        }
        alone.sort();
        times.iter_mut().for_each(|times| times.sort());
        let [none, one, hundred, thousand, gathered] = times.map(|times| median(&times));
        let alone = median(&alone);
        let each = thousand.saturating_sub(none) / 1000;
        let beside = format!("{:.0} µs with us", us(each));
        self.push_row("the upstream alone, one round trip", us(alone), "µs", None, beside);
        self.push_row("one run with one tool call", ms(one), "ms", None, String::new());
        let overhead = us(each.saturating_sub(alone));
        let what = "tool call in a run, above the upstream's";
        self.push_row(what, overhead, "µs", Some(100.0), String::new());
        let beside = format!("the upstream alone: {:.1} ms", ms(alone * 100));
        self.push_row("one run with 100 calls, one by one", ms(hundred), "ms", Some(15.0), beside);
        self.push_row(
            "one run with 100 calls at once",
            ms(gathered),
            "ms",
            Some(15.0),
            String::new(),
        );
    }

    fn throughput(&mut self) {
        let mut client = Client::start(&json!({}));
        warm(&mut client);
        let rate = rate(&mut client, self.rounds * 10, &json!({"code": "1+1"}));
        self.push_row("executions per second, 8 at a time", rate, "/s", Some(800.0), String::new());
    }

    fn memory(&mut self) {
        let mut client = Client::start(&json!({}));
        warm(&mut client);
        let server = client.child.id();
        let family = descendants(server);
        let all: f64 = family.iter().chain([&server]).map(|&pid| pss_mib(pid)).sum();
        let note = format!("{} processes", family.len() + 1);
        self.push_row(
            "idle memory, server alone (PSS)",
            pss_mib(server),
            "MiB",
            Some(20.0),
            String::new(),
        );
        self.push_row("idle memory, all processes (PSS)", all, "MiB", Some(60.0), note);
    }

    fn alternatives(&mut self) {
        let run = |rounds: usize, program: &str, arguments: &[&str]| {
            let works = Command::new(program).args(arguments).output().is_ok();
            works.then(|| {
                sample(rounds, || {
                    let output = Command::new(program).args(arguments).output().expect("it ran");
                    assert!(output.status.success());
                })
            })
        };
        for (what, program, arguments) in [
            ("for comparison: bare fork and exec of `true`", "true", &[][..]),
            ("for comparison: node cold, `1+1`, no isolation", "node", &["-p", "1+1"][..]),
            ("for comparison: deno cold, `1+1`", "deno", &["eval", "-p", "1+1"][..]),
        ] {
            if let Some(times) = run(self.rounds.min(50), program, arguments) {
                self.push_times(what, &times, None, String::new());
            }
        }
    }

    /// Adds a row with the median and the 95th percentile of sorted times.
    fn push_times(
        &mut self,
        what: &'static str,
        times: &[Duration],
        aim: Option<f64>,
        note: String,
    ) {
        self.push_row(what, ms(median(times)), "ms", aim, note);
        if let Some(row) = self.rows.last_mut() {
            row.p95 = Some(ms(percentile(times, 95)));
        }
    }

    fn push_row(
        &mut self,
        what: &'static str,
        value: f64,
        unit: &'static str,
        aim: Option<f64>,
        note: String,
    ) {
        self.rows.push(BenchRow { what, value, unit, aim, p95: None, note });
    }

    fn print(&self, as_json: bool) {
        let mut out = std::io::stdout();
        if as_json {
            let rows: Vec<Value> = self
                .rows
                .iter()
                .map(|row| {
                    let BenchRow { what, value, unit, aim, p95, note } = row;
                    json!({"what": what, "value": value, "unit": unit, "aim": aim, "p95": p95, "note": note})
                })
                .collect();
            writeln!(out, "{}", json!(rows)).expect("printed");
            return;
        }
        for BenchRow { what, value, unit, aim, p95, note } in &self.rows {
            let aim = aim.map_or(String::new(), |aim| format!("aim {aim}"));
            let p95 = p95.map_or(String::new(), |p95| format!("p95 {p95:.2}"));
            writeln!(out, "{what:<52} {value:>9.2} {unit:<4} {p95:<12} {aim:<9} {note}")
                .expect("printed");
        }
    }
}

/// Fills the worker pool and the caches.
fn warm(client: &mut Client) {
    for _ in 0..8 {
        client.run("0").fine();
    }
}

/// Returns executions per second with eight in flight.
fn rate(client: &mut Client, total: usize, call: &Value) -> f64 {
    let begun = Instant::now();
    let mut under_way = std::collections::VecDeque::new();
    for sent in 0..total {
        under_way.push_back(client.send_call("execute_code", call));
        if sent >= 8 {
            let id = under_way.pop_front().expect("eight are under way");
            client.wait_call(id).fine();
        }
    }
    for id in under_way {
        client.wait_call(id).fine();
    }
    total as f64 / begun.elapsed().as_secs_f64()
}

/// A direct connection to the upstream, without codexec.
struct DirectUpstream {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    call: String,
}

impl DirectUpstream {
    fn start(script: &std::path::Path) -> DirectUpstream {
        let mut command = Command::new("python3");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 starts");
        let stdin = child.stdin.take().expect("piped");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        // The same message that codexec would send.
        let params = json!({"name": "echo", "arguments": {}, "_meta": {"progressToken": 1}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        DirectUpstream { child, stdin, lines, call: format!("{call}\n") }
    }

    fn round_trip(&mut self) -> Duration {
        let begun = Instant::now();
        self.stdin.write_all(self.call.as_bytes()).expect("it reads");
        self.lines.next().expect("it answers").expect("a line");
        begun.elapsed()
    }
}

impl Drop for DirectUpstream {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sample(rounds: usize, mut once: impl FnMut()) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            once();
            begun.elapsed()
        })
        .collect();
    times.sort();
    times
}

fn median(times: &[Duration]) -> Duration {
    percentile(times, 50)
}

fn percentile(times: &[Duration], percent: usize) -> Duration {
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Returns the proportional set size: a shared page counts in parts for each process.
fn pss_mib(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse().ok());
    kib.unwrap_or(0.0) / 1024.0
}
