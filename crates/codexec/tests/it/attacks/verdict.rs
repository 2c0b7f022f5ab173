//! Whether what happened is what the oracle of a case allows.

use std::time::Duration;

use serde_json::Value;

use super::bench::{Answered, Before, Bench, rows};
use super::case::Oracle;
use super::host::{AFTERMATH, SETTLING, free_memory_kib, memory_kib, open_files, within};

/// What came of a case.
pub(super) struct Deed {
    pub(super) status: &'static str,
    pub(super) wall: Duration,
    /// Calls that the upstreams had seen before it.
    pub(super) seen: Vec<(String, usize)>,
    pub(super) before: Before,
    /// The code of the last execution, and its id if it took place.
    pub(super) ran: Option<(String, Option<String>)>,
}

/// Of one execution's files this much is kept, and a little for our own.
const KEPT_MIB: u64 = 66;
const KEPT_FILES: usize = 1_100;

/// The upstreams whose calls a case may count.
pub(super) const COUNTED: [&str; 3] = ["fake", "fake2", "denied"];

pub(super) fn seen(bench: &Bench) -> Vec<(String, usize)> {
    let count = |server: &&str| bench.recorders.received(server).len();
    COUNTED.iter().map(|server| ((*server).to_owned(), count(server))).collect()
}

/// Everything that is wrong; nothing when the case passes.
pub(super) fn problems(bench: &mut Bench, oracle: &Oracle, deed: &Deed) -> Vec<String> {
    let mut problems = Vec::new();
    if !oracle.status.iter().any(|status| status == deed.status) {
        problems.push(format!("it ended as {}, not one of {:?}", deed.status, oracle.status));
    }
    if deed.wall > oracle.max_wall {
        problems.push(format!("it took {:?}, more than {:?}", deed.wall, oracle.max_wall));
    }
    let said = bench.said.join("\n");
    if let Some(code) = oracle.exit_code {
        let line = format!("NONZERO_EXIT: the program ended with exit code {code}");
        if !said.contains(&line) {
            problems.push(format!("it did not end with {code}"));
        }
    }
    let heard = format!("{said}{:?}{}", bench.client.others, bench.client.stderr());
    for forbidden in oracle.forbid.iter().filter(|text| heard.contains(*text)) {
        problems.push(format!("it said {forbidden:?}"));
    }
    let is_required_there = oracle.require.iter().any(|required| said.contains(required));
    if !oracle.require.is_empty() && !is_required_there {
        problems.push(format!("it said none of {:?}", oracle.require));
    }
    for check in &oracle.host {
        if !holds(bench, check, deed) {
            problems.push(format!("{check} does not hold{}", detail(bench, check, deed)));
        }
    }
    if !problems.is_empty() {
        let start = |text: &String| text.chars().take(600).collect::<String>();
        let starts: Vec<String> = bench.said.iter().map(start).collect();
        problems.push(format!("what was said: {}", starts.join("; ")));
    }
    problems.extend(bench.broken_promises(&deed.before));
    problems
}

fn holds(bench: &mut Bench, check: &str, deed: &Deed) -> bool {
    if let Some(code) = check.strip_prefix("next_exec:") {
        return bench.run(code, &Value::Null).text == "true";
    }
    match check {
        "no_connect" => bench.listener.connections() == deed.before.connections,
        "no_udp" => bench.listener.datagrams() == deed.before.datagrams,
        "host_free_mem_ok" => within(AFTERMATH, || free_memory_kib() >= deed.before.free_kib / 2),
        "disk_restored" => {
            let (files, mib) = bench.count_new_files(&deed.before);
            files <= KEPT_FILES && mib <= KEPT_MIB
        }
        // Everything that was read is JSON-RPC, or the reader would have stopped; what remains is
        // that nobody has answered for us.
        "stdout_jsonrpc_clean" => bench.client.others.is_empty(),
        "log_valid_jsonl" => match &deed.ran {
            Some((_, Some(id))) => {
                let sql = format!("select * from executions where id = '{id}'");
                rows(&bench.state(), &sql).len() == 1
            }
            Some((_, None)) | None => true,
        },
        "audit_code_equals_request" => match &deed.ran {
            Some((code, Some(id))) => bench.recorded_code(id) == code.as_str(),
            Some((_, None)) | None => true,
        },
        "state_unchanged" => !bench.has_new_state(&deed.before),
        "scripts_tree_ok" => is_library(&bench.state().join("scripts")),
        // These hold for every case, or it has failed already.
        "canary_secret"
        | "sibling_ok"
        | "server_same_pid"
        | "outdir_clean"
        | "no_survivors"
        | "proj_protected_unchanged" => true,
        // A pool may still be filling up again.
        limited if limited.starts_with("fd_delta") => {
            let (_, _, limit) = relation(limited);
            within(SETTLING, || measured(bench, "fd_delta", deed) <= limit)
        }
        "quiet(fake)" => {
            let count = || bench.recorders.received("fake").len();
            within(AFTERMATH, || {
                let first = count();
                !within(Duration::from_millis(300), || count() != first)
            })
        }
        counted => {
            let (name, relation, limit) = relation(counted);
            let value = measured(bench, name, deed);
            if relation == "==" { value == limit } else { value <= limit }
        }
    }
}

/// Folders with plain names, an index that can be read, and nothing that leads elsewhere.
fn is_library(folder: &std::path::Path) -> bool {
    let is_plain = |name: &str| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'.')
            && bytes.all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_fine = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().expect("it is there");
        let is_file = name == "index.json" || name.starts_with('.');
        is_plain(&name) && !kind.is_symlink() && (is_file || kind.is_dir())
    };
    let index = std::fs::read_to_string(folder.join("index.json")).unwrap_or_default();
    entries.into_iter().all(is_fine) && serde_json::from_str::<Value>(&index).is_ok()
}

/// `rss_delta_mb<=64` in its parts.
fn relation(check: &str) -> (&str, &str, u64) {
    for relation in ["==", "<="] {
        if let Some((name, limit)) = check.split_once(relation) {
            return (name, relation, limit.parse().expect("a number"));
        }
    }
    panic!("nobody knows how to check {check}")
}

fn measured(bench: &Bench, name: &str, deed: &Deed) -> u64 {
    let length = |length: usize| u64::try_from(length).expect("it fits");
    match name {
        "rss_delta_mb" => {
            memory_kib(bench.pid(), "VmHWM").saturating_sub(deed.before.rss_kib) >> 10
        }
        "fd_delta" => length(open_files(bench.pid()).saturating_sub(deed.before.open_files)),
        "response_bytes" => length(bench.said.iter().map(String::len).max().unwrap_or_default()),
        "log_growth_kb" => bench.log_growth(&deed.before) >> 10,
        "reply_kb" => length(bench.said.iter().map(String::len).max().unwrap_or_default()) >> 10,
        other => {
            let (kind, whose) = other.trim_end_matches(')').split_once('(').expect("kind(whose)");
            let (server, tool) = whose.split_once(':').map_or((whose, None), |(s, t)| (s, Some(t)));
            let seen = deed.seen.iter().find(|(name, _)| name == server).map_or(0, |(_, n)| *n);
            let received = bench.recorders.received(server);
            let calls = received.iter().skip(seen).filter(|one| {
                one.method == "tools/call" && (tool.is_none() || one.tool.as_deref() == tool)
            });
            match kind {
                "upstream_calls" => length(calls.count()),
                "upstream_bytes" => calls.map(|one| one.bytes).sum(),
                _ => panic!("nobody knows how to measure {name}"),
            }
        }
    }
}

fn detail(bench: &Bench, check: &str, deed: &Deed) -> String {
    let is_counted = !check.starts_with("next_exec") && check.contains('=');
    if !is_counted {
        return String::new();
    }
    format!("; it is {}", measured(bench, relation(check).0, deed))
}

/// The first that was not well, or the last.
pub(super) fn worst(answers: &[Answered]) -> &'static str {
    answers.iter().map(|answered| answered.status).find(|status| *status != "ok").unwrap_or("ok")
}
