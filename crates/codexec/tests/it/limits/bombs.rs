//! Programs that take all they can get, in each language: they end as they should, the server
//! answers meanwhile, and nothing of them stays.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{BETWEEN_PINGS, PROMPT, TIMED_OUT, TOO_MUCH_OUTPUT};
use crate::attacks::bench::{Answered, Bench};
use crate::attacks::host::{groups, is_root};

/// Nothing here waits for anything but a limit of at most two seconds.
const SOON: Duration = Duration::from_secs(10);
/// A slot for each guest at once, and those that wait for a language that is seldom used.
const GROUPS: usize = 12;
pub(super) const OUT_OF_MEMORY: &str = "MEMORY_LIMIT: stopped: more than 512 MiB of memory";
const MANY: &str = "PROCESS_LIMIT: more than 128 processes and threads";
const FULL: &str = "DISK_LIMIT: more than 256 MiB or 16384 files on disk";

/// A server on which programs have run.
pub(super) fn bench(settings: &str) -> Bench {
    let mut bench = Bench::start(&[], settings);
    bench.warm_up();
    bench
}

/// Runs a program to its end: pings are answered meanwhile, nothing is left, and the next
/// execution works.
#[track_caller]
pub(super) fn run(bench: &mut Bench, language: &str, code: &str, timeout_ms: u64) -> Answered {
    let before = bench.before();
    let begun = Instant::now();
    let id = bench.send(language, code, &json!({"timeout_ms": timeout_ms}));
    let mut pings = Vec::new();
    while !bench.is_answered(id, BETWEEN_PINGS) {
        pings.push(bench.client.ping());
    }
    let answered = bench.answered(id);
    let took = begun.elapsed();
    let slowest = pings.iter().max().copied().unwrap_or_default();
    let line = answered.first_line();
    let _ = writeln!(
        std::io::stderr(),
        "{language}: {line} after {took:?} of {timeout_ms} ms, slowest ping {slowest:?}"
    );
    assert!(took < SOON.max(2 * Duration::from_millis(timeout_ms)), "it took {took:?}");
    assert!(slowest < PROMPT, "a ping took {slowest:?}");
    assert_eq!(bench.left_of_programs(&before), None);
    assert_eq!(bench.broken_promises(&before), Vec::<String>::new());
    let groups = groups(bench.pid());
    assert!(is_counted() == groups.is_some() && groups.unwrap_or(0) <= GROUPS, "{groups:?} groups");
    assert_eq!(next(bench, language), "42");
    answered
}

fn next(bench: &mut Bench, language: &str) -> String {
    let code = match language {
        "python" => "6 * 7",
        "bash" => "echo $((6 * 7))",
        _ => "return 6 * 7",
    };
    let id = bench.send(language, code, &Value::Null);
    bench.answered(id).text
}

/// The first line of the answer.
#[track_caller]
fn check(programs: [(&str, &str); 3], timeout_ms: u64, first_line: &str) {
    let mut bench = bench("");
    for (language, code) in programs {
        let answered = run(&mut bench, language, code, timeout_ms);
        assert_eq!(answered.first_line(), first_line, "{language}");
    }
    assert_eq!(bench.broken_records(), Vec::<String>::new());
}

/// The limits that were met, one a line.
pub(super) fn met(answered: &Answered) -> Vec<&str> {
    let after = answered.text.split_once("[limits]\n").map_or("", |(_, after)| after);
    after.lines().collect()
}

/// Where only the kernel's own limit holds, it does not tell that it was met.
pub(super) fn is_counted() -> bool {
    is_root()
}

#[test]
fn res_1_sleep_is_stopped_in_every_language() {
    let programs = [
        ("python", "import time\ntime.sleep(30)"),
        ("bash", "sleep 30"),
        ("node", "await new Promise((wake) => setTimeout(wake, 30_000))"),
    ];
    check(programs, 1000, TIMED_OUT);
}

#[test]
fn res_1_loops_are_stopped_in_every_language() {
    let programs =
        [("python", "while True: pass"), ("bash", "while :; do :; done"), ("node", "for (;;) {}")];
    check(programs, 1000, TIMED_OUT);
}

#[test]
fn res_2_memory_is_bounded_in_every_language() {
    let programs = [
        ("python", "a = []\nwhile True: a.append(bytearray(1 << 20))"),
        ("bash", "x=xxxxxxxxxxxxxxxx; while :; do x=\"$x$x\"; done"),
        ("node", "const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1))"),
    ];
    check(programs, 20_000, OUT_OF_MEMORY);
}

#[test]
fn res_2_memory_of_many_processes_is_counted_together() {
    let python = "import os, time\nfor _ in range(12):\n    if os.fork() == 0:\n        \
                  b = bytearray(100 << 20)\n        time.sleep(20)\nos.wait()\ntime.sleep(20)";
    let bash =
        "for i in 1 2 3 4 5 6 7 8; do (head -c 100m /dev/zero | tail | sleep 20) & done; wait";
    let node = "const { spawn } = await import('node:child_process');\nfor (let i = 0; i < 8; i++) \
                spawn('python3', ['-c', 'b = bytearray(100 << 20); import time; time.sleep(20)']);\n\
                await new Promise((wake) => setTimeout(wake, 20_000))";
    let mut bench = bench("");
    for (language, code) in [("python", python), ("bash", bash), ("node", node)] {
        let answered = run(&mut bench, language, code, 8_000);
        // One of many may be the one that the kernel ends, and the others go on within bounds.
        let line = answered.first_line();
        let is_stopped = line == OUT_OF_MEMORY || met(&answered).contains(&OUT_OF_MEMORY_MET);
        assert!(is_stopped, "{language}: {}", answered.text);
    }
}

const OUT_OF_MEMORY_MET: &str = "MEMORY_LIMIT: more than 512 MiB of memory";

#[test]
fn res_3_a_flood_of_output_is_stopped_in_every_language() {
    let programs = [
        ("python", "import os\nfor _ in range(1000): os.write(1, b'x' * (1 << 20))"),
        ("bash", "head -c 1000000000 /dev/zero | tr '\\0' x"),
        (
            "node",
            "const { once } = await import('node:events');\nfor (let i = 0; i < 1000; i++) \
                  if (!process.stdout.write('x'.repeat(1 << 20))) await once(process.stdout, 'drain')",
        ),
    ];
    check(programs, 20_000, TOO_MUCH_OUTPUT);
}

#[test]
fn res_2_fork_bombs_are_bounded_in_every_language() {
    let programs = [
        ("python", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"),
        ("bash", ":(){ :|:& };:\nsleep 20"),
        (
            "node",
            "const { spawn } = await import('node:child_process');\nfor (;;) { try { \
                  spawn('sleep', ['20'], { detached: true, stdio: 'ignore' }).on('error', () => {}) \
                  } catch {} await null }",
        ),
    ];
    let mut bench = bench("");
    for (language, code) in programs {
        // Long enough for a bomb to reach the limit on a busy machine.
        let answered = run(&mut bench, language, code, 4_000);
        let many = if is_counted() { met(&answered) == [MANY] } else { true };
        assert!(many && answered.status != "ok", "{language}: {}", answered.text);
    }
}

#[test]
fn res_2_threads_are_bounded_in_every_language() {
    let python = "import threading, time, os\nn = 0\ntry:\n    for _ in range(1000):\n        \
                  threading.Thread(target=time.sleep, args=(20,), daemon=True).start()\n        \
                  n += 1\nexcept RuntimeError: pass\nprint(n < 1000, flush=True)\nos._exit(0)";
    let bash = "for i in $(seq 1000); do sleep 20 & done 2>/dev/null; \
                n=$(jobs -p | wc -l); [ $n -lt 1000 ] && echo True; kill $(jobs -p)";
    let node = "const { Worker } = await import('node:worker_threads');\nlet n = 0;\n\
                for (let i = 0; i < 1000; i++) new Worker('setTimeout(() => {}, 20000)', \
                { eval: true }).on('error', () => {}).on('online', () => n++);\n\
                await new Promise((wake) => setTimeout(wake, 1500));\n\
                console.log(n < 1000 ? 'True' : n); process.exit(0)";
    let mut bench = bench("");
    for (language, code) in [("python", python), ("bash", bash), ("node", node)] {
        let answered = run(&mut bench, language, code, 8_000);
        let is_full = ["fail", "oom", "timeout"].contains(&answered.status);
        assert!(is_full || answered.first_line() == "True", "{language}: {}", answered.text);
    }
}

#[test]
fn res_2_the_disk_is_bounded_in_every_language() {
    let python = "import errno\nf = open('big', 'wb', 0)\ntry:\n    while True: f.write(bytes(1 << 20))\n\
                  except OSError as e: print(errno.errorcode[e.errno])";
    let bash = "dd if=/dev/zero of=a bs=1M count=200 2>/dev/null; \
                dd if=/dev/zero of=b bs=1M count=1000 2>&1 | grep -o 'No space left' | head -1";
    let node = "const fs = await import('node:fs');\ntry { for (let i = 0; ; i++) \
                fs.writeFileSync('f' + i, Buffer.alloc(1 << 22)) } catch (e) { console.log(e.code) }";
    let mut bench = bench("");
    let expected = [("python", python, ["EFBIG", "ENOSPC"]), ("bash", bash, ["No space left"; 2])];
    for (language, code, lines) in expected.into_iter().chain([("node", node, ["ENOSPC"; 2])]) {
        let answered = run(&mut bench, language, code, 20_000);
        assert!(lines.contains(&answered.first_line()), "{language}: {}", answered.text);
        assert_eq!(met(&answered), [FULL], "{language}: {}", answered.text);
    }
}

#[test]
fn res_6_daemons_die_with_their_execution() {
    let python = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        \
                  time.sleep(60)\n    os._exit(0)\nos.wait()\ntime.sleep(0.4)\nprint('left')";
    let bash =
        "(setsid nohup sleep 60 >/dev/null 2>&1 &); setsid sleep 61 & disown; sleep 0.4; echo left";
    let node = "const { spawn } = await import('node:child_process');\n\
                spawn('setsid', ['sleep', '60'], { detached: true, stdio: 'ignore' }).unref();\n\
                await new Promise((wake) => setTimeout(wake, 400));\nconsole.log('left')";
    check([("python", python), ("bash", bash), ("node", node)], 20_000, "left");
}

#[test]
fn res_6_programs_are_asked_to_end_and_stubborn_ones_killed() {
    let mut polite = bench("[limits]\ngrace-s = 20\n");
    let python = "import signal, sys, time\ndef over(*_):\n    print('last words', flush=True)\n    \
                  sys.exit(0)\nsignal.signal(signal.SIGTERM, over)\ntime.sleep(30)";
    let bash = "trap 'echo last words; exit 0' TERM\nsleep 30 & wait";
    let node = "process.on('SIGTERM', () => { console.log('last words'); process.exit(0) });\n\
                await new Promise((wake) => setTimeout(wake, 30_000))";
    for (language, code) in [("python", python), ("bash", bash), ("node", node)] {
        let answered = run(&mut polite, language, code, 1000);
        assert_eq!(answered.text, format!("{TIMED_OUT}\n[output]\nlast words"), "{language}");
    }
    // Nobody is asked by default.
    let answered = run(&mut bench(""), "bash", bash, 1000);
    assert_eq!(answered.text, TIMED_OUT);
    let python = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                  while True: time.sleep(1)";
    let bash = "trap '' TERM INT HUP\nwhile :; do sleep 1; done";
    let node = "process.on('SIGTERM', () => {});\nfor (;;) {}";
    let mut short = bench("[limits]\ngrace-s = 1\n");
    for (language, code) in [("python", python), ("bash", bash), ("node", node)] {
        let answered = run(&mut short, language, code, 1000);
        assert_eq!(answered.text, TIMED_OUT, "{language}");
    }
}
