//! Many executions, one after the other and at once: every one is answered, and afterwards the
//! server is what it was.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::attacks::bench::configure;
use crate::attacks::host::{Guests, Sandbox, groups, memory_kib, mounts, open_files, within};
use crate::support::{Client, descendants};

/// A rush opens more slots, which wait a while for another one.
const LINGER: Duration = Duration::from_secs(25);
/// What the server's memory may have grown by: allocators keep what they had.
const GROWTH_KIB: u64 = 24 << 10;

/// A server in which nothing has changed for so long starts nothing.
const SETTLED: Duration = Duration::from_secs(1);

/// `[workers] max` of the servers here.
const MAX_WORKERS: usize = 8;
/// A group for each slot that there can be in the four pools. They are used again.
const GROUPS: usize = 4 * MAX_WORKERS;

/// One small program in each language, with the answer.
const PROGRAMS: [(&str, &str, &str); 5] = [
    ("typescript", "return 6 * 7", "42"),
    ("javascript", "return 6 * 7", "42"),
    ("python", "6 * 7", "42"),
    ("bash", "echo $((6 * 7))", "42"),
    ("node", "return 6 * 7", "42"),
];

/// What there is of a server.
#[derive(Debug, PartialEq)]
struct Left {
    open_files: usize,
    processes: usize,
    guests: (usize, usize),
    groups: usize,
    mounts: Vec<String>,
}

fn left(client: &Client) -> Left {
    let pid = client.child.id();
    let guests = Guests::of(pid);
    Left {
        open_files: open_files(pid),
        processes: descendants(pid).len(),
        guests: (guests.firsts.len(), guests.others.len()),
        groups: groups(pid).unwrap_or_default(),
        mounts: mounts(),
    }
}

/// Waits until the server has started the workers that it keeps ready, and returns what there is of
/// it then.
fn settle(client: &Client) -> Left {
    let (mut last, mut since) = (left(client), Instant::now());
    let is_settled = within(LINGER, || {
        let now = left(client);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        since.elapsed() >= SETTLED
    });
    assert!(is_settled, "{last:?}");
    last
}

fn client(settings: &str) -> Client {
    let mut client = Client::with(&json!({}), |command| configure(command, settings));
    // The first of each language starts what all others share.
    for (language, code, answer) in PROGRAMS {
        let said = client.call("execute_code", &json!({"language": language, "code": code}));
        assert_eq!(said.fine(), answer, "{language}");
    }
    client
}

/// The number of open files, processes and workers after a rush is no more than before it.
#[track_caller]
fn is_as_before(client: &Client, before: &Left, kib: u64) {
    let is_so = || {
        let now = left(client);
        // Groups are handed back and used again, never made without end.
        now.open_files <= before.open_files
            && now.processes <= before.processes
            && now.guests.0 <= before.guests.0
            && now.guests.1 <= before.guests.1
            && now.groups <= before.groups.max(GROUPS)
            && now.mounts == before.mounts
    };
    assert!(within(LINGER, is_so), "{:?} after {before:?}", left(client));
    let grown = memory_kib(client.child.id(), "VmRSS").saturating_sub(kib);
    let _ = writeln!(std::io::stderr(), "the server has grown by {grown} KiB: {:?}", left(client));
    assert!(grown <= GROWTH_KIB, "the server has grown by {grown} KiB");
}

#[test]
fn a_thousand_executions_leave_nothing() {
    let mut client = client("[workers]\nwarm = 2\nmax = 8\n");
    let before = settle(&client);
    let begun = Instant::now();
    let mut kib = 0;
    for round in 0..1000 {
        // A Node takes as long as all others together.
        let kind = if round % 40 == 39 { 4 } else { round % 4 };
        let (language, code, answer) = PROGRAMS[kind];
        let said = client.call("execute_code", &json!({"language": language, "code": code}));
        assert_eq!(said.fine(), answer, "{language}");
        if round == 99 {
            // What a hundred have left is not a leak.
            kib = memory_kib(client.child.id(), "VmRSS");
        }
    }
    let _ = writeln!(std::io::stderr(), "1000 executions took {:?}", begun.elapsed());
    is_as_before(&client, &before, kib);
}

#[test]
fn two_hundred_at_once_are_all_answered() {
    let mut client = client("[workers]\nwarm = 2\nmax = 8\n");
    let before = settle(&client);
    let kib = memory_kib(client.child.id(), "VmRSS");
    let begun = Instant::now();
    let send = |n: usize| {
        let (language, code, answer) = PROGRAMS[n % PROGRAMS.len()];
        let arguments = json!({"language": language, "code": code});
        (client.send_call("execute_code", &arguments), language, answer)
    };
    let sent: Vec<(u64, &str, &str)> = (0..200).map(send).collect();
    let mut busy = 0;
    for (id, language, answer) in sent {
        let said = client.wait_call(id);
        // Executions that come while slots are being refilled open no further ones.
        let slots = Sandbox::of(client.child.id()).keepers.len();
        assert!(slots <= MAX_WORKERS, "{slots} slots for JavaScript");
        if said.is_error {
            let is_refused = said.text.starts_with("BUSY: ") && said.text.contains(" s");
            assert!(is_refused, "{language}: {}", said.text);
            busy += 1;
            continue;
        }
        assert_eq!(said.text, answer, "{language}");
    }
    let took = begun.elapsed();
    let _ = writeln!(std::io::stderr(), "200 at once took {took:?}, {busy} were refused");
    let after = client.call("execute_code", &json!({"code": "return 6 * 7"}));
    assert_eq!(after.fine(), "42");
    is_as_before(&client, &before, kib);
}

/// The slots of one language make room for another's, whose limits are larger.
#[test]
fn slots_that_were_closed_are_opened_for_another_language() {
    let mut client = Client::with(&json!({}), |command| {
        configure(command, "[workers]\nwarm = 1\nmax = 8\n");
    });
    let server = client.child.id();
    let mut rush = |language: &str, code: &str| {
        let send =
            |_| client.send_call("execute_code", &json!({"language": language, "code": code}));
        let sent: Vec<u64> = (0..6).map(send).collect();
        for id in sent {
            assert_eq!(client.wait_call(id).fine(), "1", "{language}");
        }
    };
    rush("javascript", "await new Promise((wake) => setTimeout(wake, 200)); return 1");
    // One of each language that waits: the slots that are too many are closed after a while.
    assert!(within(LINGER, || Guests::of(server).firsts.len() <= 3));
    rush("python", "import time\ntime.sleep(0.2)\n1");
    rush("bash", "sleep 0.2; echo 1");
    rush("node", "await new Promise((wake) => setTimeout(wake, 200)); return 1");
}

/// Whatever is cancelled, killed or broken in the middle is cleaned up as well.
#[test]
fn executions_that_end_badly_leave_nothing() {
    let mut client = client("[workers]\nwarm = 2\nmax = 8\n");
    let before = settle(&client);
    let kib = memory_kib(client.child.id(), "VmRSS");
    let bad: [(&str, &str); 6] = [
        ("python", "import os\nos._exit(3)"),
        ("python", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
        ("python", "import os, time\nif os.fork() == 0: time.sleep(60)\n1 / 0"),
        ("bash", "kill -9 $$"),
        ("bash", "sleep 60 & exit 1"),
        ("node", "process.abort()"),
    ];
    for round in 0..60 {
        let (language, code) = bad[round % bad.len()];
        let said = client.call("execute_code", &json!({"language": language, "code": code}));
        assert!(said.is_error, "{language}: {}", said.text);
    }
    for round in 0..30 {
        let (language, code) =
            [("python", "import time\ntime.sleep(60)"), ("bash", "sleep 60")][round % 2];
        let id = client.send_call("execute_code", &json!({"language": language, "code": code}));
        let params = json!({"requestId": id});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        client.write(&cancel);
    }
    client.others.retain(|message: &Value| message["id"].is_null());
    is_as_before(&client, &before, kib);
}
