//! Memory is one limit and the disk another, and no memory is out of sight.

use super::bombs::{bench, run};
use crate::attacks::bench::Bench;

const SETTINGS: &str = "[limits]\nmemory-mib = 128\ndisk-mib = 256\n";
/// Eleven per cent more than that, for as long as nobody objects.
const HOLD: &str = "import time\nx = b'a' * (142 << 20)\ntime.sleep(15)\nprint('held')";
const STOPPED: &str = "MEMORY_LIMIT: stopped: more than 128 MiB of memory";

fn small() -> Bench {
    bench(SETTINGS)
}

#[track_caller]
fn check(bench: &mut Bench, language: &str, code: &str, first_line: &str) {
    let answered = run(bench, language, code, 20_000);
    assert_eq!(answered.first_line(), first_line, "{language}: {}", answered.text);
}

/// THREAT[RES-8]
#[test]
fn res_8_a_tenth_more_than_the_limit_is_too_much_in_every_language() {
    let mut bench = small();
    let node = "const x = Buffer.alloc(142 << 20, 1);\n\
                await new Promise((wake) => setTimeout(wake, 15_000)); console.log('held')";
    let bash = format!("python3 -c \"{HOLD}\"");
    for _ in 0..3 {
        check(&mut bench, "python", HOLD, STOPPED);
        check(&mut bench, "node", node, STOPPED);
        check(&mut bench, "bash", &bash, STOPPED);
    }
}

#[test]
fn res_8_a_guest_may_have_its_whole_memory_and_its_whole_disk() {
    let mut bench = small();
    let disk = "f = open('f', 'wb')\nfor _ in range(230): f.write(b'f' * (1 << 20))\nf.close()\n";
    let python = format!("{disk}x = b'a' * (115 << 20)\nprint('both')");
    check(&mut bench, "python", &python, "both");
    let node = "const fs = await import('node:fs');\nconst part = Buffer.alloc(10 << 20, 1);\n\
                for (let i = 0; i < 23; i++) fs.appendFileSync('f', part);\n\
                const x = Buffer.alloc(90 << 20, 1); console.log('both')";
    check(&mut bench, "node", node, "both");
    // A file that is mapped is on the disk, not in memory.
    let mapped = "import mmap\nf = open('f', 'r+b')\nm = mmap.mmap(f.fileno(), 0)\n\
                  print(sum(m[i] for i in range(0, len(m), 4096)) > 0)";
    check(&mut bench, "python", &format!("{disk}{mapped}"), "True");
}

#[test]
fn res_8_a_disk_that_was_emptied_is_no_memory() {
    let mut bench = small();
    let python = "import os\nfor _ in range(3):\n    with open('f', 'wb') as f:\n        \
                  for _ in range(200): f.write(b'f' * (1 << 20))\n    os.remove('f')\n";
    check(&mut bench, "python", &format!("{python}{HOLD}"), STOPPED);
}

/// The files of the guest before may still be there while the next worker is made.
#[test]
fn res_8_what_one_guest_left_gives_the_next_no_memory() {
    let mut bench = small();
    let files =
        "f = open('f', 'wb')\nfor _ in range(200): f.write(b'f' * (1 << 20))\nprint('full')";
    for _ in 0..3 {
        check(&mut bench, "python", files, "full");
        check(&mut bench, "python", HOLD, STOPPED);
    }
}

/// THREAT[RES-9]
#[test]
fn res_9_memory_that_is_shared_and_hidden_is_not_held() {
    let mut bench = small();
    let hide = "for at in range(0, 1 << 30, 1 << 20):\n    m[at:at + (1 << 20)] = b'z' * (1 << 20)\n    \
                m.madvise(mmap.MADV_DONTNEED, at, 1 << 20)\nprint('held')";
    let anonymous = format!("import mmap\nm = mmap.mmap(-1, 1 << 30)\n{hide}");
    let answered = run(&mut bench, "python", &anonymous, 20_000);
    let line = answered.first_line();
    // Where nobody counts it, it is not to be had.
    let is_refused = line == "RUNTIME_ERROR: PermissionError: [Errno 1] Operation not permitted";
    assert!(line == STOPPED || is_refused, "{}", answered.text);
    let device = format!(
        "import mmap\nf = open('/dev/zero', 'r+b')\nm = mmap.mmap(f.fileno(), 1 << 30)\n{hide}"
    );
    let refused = "RUNTIME_ERROR: PermissionError: [Errno 13] Permission denied: '/dev/zero'";
    check(&mut bench, "python", &device, refused);
    check(&mut bench, "bash", "head -c 4096 /dev/zero | wc -c", "4096");
}

#[test]
fn res_9_memory_that_comes_and_goes_is_seen() {
    let mut bench = small();
    let python = "import mmap\nsize = 200 << 20\nfor _ in range(40):\n    \
                  m = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n    \
                  for at in range(0, size, 1 << 20): m[at:at + (1 << 20)] = b'z' * (1 << 20)\n    \
                  m.madvise(mmap.MADV_DONTNEED)\n    m.close()\nprint('held')";
    check(&mut bench, "python", python, STOPPED);
}

#[test]
fn res_9_every_process_counts_from_its_first_page() {
    let mut bench = small();
    let each = "import time; x = bytearray(8 << 20); print(1, flush=True); time.sleep(20)";
    let python = format!(
        "import subprocess, time\nall = [subprocess.Popen(['python3', '-c', '{each}'], \
         stdout=subprocess.PIPE) for _ in range(16)]\nfor one in all: one.stdout.readline()\n\
         time.sleep(15)\nprint('held')"
    );
    check(&mut bench, "python", &python, STOPPED);
}

#[test]
fn res_9_memory_that_processes_have_in_common_counts_once() {
    let mut bench = small();
    let python = "import os, time\nx = b'a' * (60 << 20)\nfor _ in range(6):\n    \
                  if os.fork() == 0:\n        time.sleep(0.5)\n        os._exit(0)\n\
                  for _ in range(6): os.wait()\nprint('common')";
    check(&mut bench, "python", python, "common");
    let started = "import subprocess\nx = b'a' * (80 << 20)\n\
                   for _ in range(20): subprocess.run(['true'])\nprint('started')";
    check(&mut bench, "python", started, "started");
}
