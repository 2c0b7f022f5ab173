//! Every limit of the settings, crossed once.

use serde_json::json;

use super::bombs::{bench, is_counted, met, run};
use crate::attacks::bench::Bench;

/// The first line that comes of it.
#[track_caller]
fn stopped(setting: &str, programs: &[(&str, &str)], first_line: &str) {
    let mut bench = bench(&format!("[limits]\n{setting}\n"));
    for (language, code) in programs {
        let answered = run(&mut bench, language, code, 10_000);
        assert_eq!(answered.first_line(), first_line, "{language}: {}", answered.text);
    }
}

/// The limits that are named beside what came of it.
#[track_caller]
fn named(setting: &str, programs: &[(&str, &str)], limit: &str) {
    let mut bench = bench(&format!("[limits]\n{setting}\n"));
    for (language, code) in programs {
        let answered = run(&mut bench, language, code, 10_000);
        assert_eq!(met(&answered), [limit], "{language}: {}", answered.text);
    }
}

#[test]
fn the_cpu_limit_is_of_all_processes_together() {
    let python = "import os\nos.fork()\nwhile True: pass";
    let bash = "(while :; do :; done) & while :; do :; done";
    let node = "const { Worker } = await import('node:worker_threads');\n\
                new Worker('for (;;) {}', { eval: true });\nfor (;;) {}";
    let programs = [("python", python), ("bash", bash), ("node", node)];
    stopped("cpu-s = 1", &programs, "CPU_LIMIT: stopped: more than 1 s of CPU time");
}

#[test]
fn the_cpu_limit_is_of_one_process_too() {
    let programs = [("python", "while True: pass"), ("bash", "while :; do :; done")];
    stopped("cpu-s = 1", &programs, "CPU_LIMIT: stopped: more than 1 s of CPU time");
}

/// 300 s of time allow ten times the CPU time of 30 s.
#[test]
fn more_time_is_more_cpu_time() {
    let mut bench = bench("[limits]\ncpu-s = 1\n");
    let busy = "import time\nwhile time.process_time() < 3: pass\nprint('worked')";
    assert_eq!(run(&mut bench, "python", busy, 300_000).first_line(), "worked");
    let answered = run(&mut bench, "python", busy, 30_000);
    assert_eq!(answered.first_line(), "CPU_LIMIT: stopped: more than 1 s of CPU time");
}

#[test]
fn the_memory_limit_is_the_settings() {
    let programs = [
        ("python", "b = bytearray(300 << 20)"),
        ("bash", "x=xxxxxxxxxxxxxxxx; while :; do x=\"$x$x\"; done"),
        ("node", "const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1))"),
    ];
    let line = "MEMORY_LIMIT: stopped: more than 128 MiB of memory";
    stopped("memory-mib = 128", &programs, line);
}

#[test]
fn the_disk_limit_is_the_settings() {
    let programs = [
        ("python", "try: open('x', 'wb').write(bytes(40 << 20))\nexcept OSError: pass"),
        ("bash", "for i in 1 2 3; do head -c 10m /dev/zero > $i; done 2>/dev/null; true"),
        (
            "node",
            "const fs = await import('node:fs'); try { for (let i = 0; ; i++) \
                  fs.writeFileSync('f' + i, Buffer.alloc(1 << 20)) } catch {}",
        ),
    ];
    named("disk-mib = 16", &programs, "DISK_LIMIT: more than 16 MiB or 16384 files on disk");
}

#[test]
fn the_limit_of_files_is_the_settings() {
    let python = "try:\n    for i in range(5000): open(str(i), 'w').close()\nexcept OSError: pass";
    let bash = "for i in $(seq 5000); do : > $i || break; done 2>/dev/null; true";
    let programs = [("python", python), ("bash", bash)];
    named("disk-files = 1000", &programs, "DISK_LIMIT: more than 256 MiB or 1000 files on disk");
}

#[test]
fn the_limit_of_processes_is_the_settings() {
    if !is_counted() {
        return;
    }
    let python = "import subprocess\ntry:\n    for _ in range(40): subprocess.Popen(['sleep', '9'])\n\
                  except OSError: pass";
    let bash = "for i in $(seq 40); do sleep 9 & done 2>/dev/null; kill $(jobs -p); true";
    let programs = [("python", python), ("bash", bash)];
    named("processes = 16", &programs, "PROCESS_LIMIT: more than 16 processes and threads");
}

/// The kernel tells nobody that it was met, so the program has to.
#[test]
fn the_limit_of_open_files_is_the_settings() {
    let mut bench = bench("[limits]\nopen-files = 128\n");
    let python = "import errno\nkeep = []\ntry:\n    while True: keep.append(open('/dev/null'))\n\
                  except OSError as e: print(errno.errorcode[e.errno], len(keep) < 128)";
    let node = "const fs = await import('node:fs'); let n = 0; try { for (;;) { \
                fs.openSync('/dev/null'); n++ } } catch (e) { console.log(e.code, n < 128 ? 'True' : n) }";
    for (language, code) in [("python", python), ("node", node)] {
        let answered = run(&mut bench, language, code, 10_000);
        assert_eq!(answered.first_line(), "EMFILE True", "{language}: {}", answered.text);
    }
}

#[test]
fn the_output_limit_is_the_settings() {
    let programs = [
        ("python", "print('x' * 200_000)"),
        ("bash", "head -c 200000 /dev/zero | tr '\\0' x"),
        ("node", "console.log('x'.repeat(200_000))"),
    ];
    let line = "OUTPUT_LIMIT: stopped: more than 65536 bytes of output; print less, return what \
                matters";
    stopped("output-kib = 64", &programs, line);
}

#[test]
fn the_time_is_the_settings() {
    let mut bench = bench("[limits]\ntimeout-ms = 700\nmax-timeout-ms = 900\n");
    for (language, code) in [("python", "import time\ntime.sleep(9)"), ("bash", "sleep 9")] {
        let unasked = bench.send(language, code, &json!({}));
        let asked = bench.send(language, code, &json!({"timeout_ms": 60_000}));
        let line = |bench: &mut Bench, id| bench.answered(id).first_line().to_owned();
        let text = "stopped after 700 ms; do less, or ask for more with timeout_ms";
        assert_eq!(line(&mut bench, unasked), format!("TIMEOUT: {text}"), "{language}");
        let refused = line(&mut bench, asked);
        assert_ne!(refused, "", "{language}");
        assert!(!refused.starts_with("TIMEOUT: stopped after 60000"), "{language}: {refused}");
    }
}

#[test]
fn the_number_of_tool_calls_is_the_settings() {
    let settings = "[limits]\ntool-calls = 3\n";
    let mut bench = Bench::start(&[("fake", json!({}))], settings);
    bench.warm_up();
    let python = "for _ in range(9): call_tool('fake', 'echo', {})";
    let bash = "for i in 1 2 3 4 5 6 7 8 9; do mcp fake echo; done; sleep 5";
    let node = "for (let i = 0; i < 9; i++) await callTool('fake', 'echo', {})";
    let line = "MAX_TOOL_CALLS_EXCEEDED: stopped: more than 3 tool calls in one execution";
    for (language, code) in [("python", python), ("bash", bash), ("node", node)] {
        let answered = run(&mut bench, language, code, 10_000);
        assert_eq!(answered.first_line(), line, "{language}: {}", answered.text);
    }
    assert_eq!(bench.recorders.calls("fake", None).len(), 9);
}
